-- Peaks: every file of peaks/ is one version of the table, named after the file (published-v1) and never edited.
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
        'fp4_tflops': 'DOUBLE',
        'fp8_tflops': 'DOUBLE',
        'bf16_tflops': 'DOUBLE',
        'tf32_tflops': 'DOUBLE',
        'fp32_tflops': 'DOUBLE'
    }
)
