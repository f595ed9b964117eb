-- Peaks: every file of peaks/ is one version of the table, named after the file and never edited. published-v1 is as
-- the public catalog has it; datasheet-v2 is the highest official dense figure of any variant that a hardware name may
-- mean.
SELECT parse_filename(filename, true) AS peaks, * EXCLUDE (filename)
FROM read_csv(
    getvariable('warehouse') || '/peaks/*.csv',
    header = true,
    delim = ',',
    filename = true,
    union_by_name = true,
    types = {
        'match': 'VARCHAR',
        'label': 'VARCHAR',
        'hbm_gb_s': 'DOUBLE',
        'l2_mib': 'DOUBLE',
        'fp4_tflops': 'DOUBLE',
        'fp6_tflops': 'DOUBLE',
        'fp8_tflops': 'DOUBLE',
        'int8_tops': 'DOUBLE',
        'bf16_tflops': 'DOUBLE',
        'tf32_tflops': 'DOUBLE',
        'fp32_tflops': 'DOUBLE',
        'source': 'VARCHAR'
    }
)
