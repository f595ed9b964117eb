-- Floors, headroom-v2 with the peaks datasheet-v2: a true lower bound, or null with the reason.
-- Memory: the input bytes that must be read, plus the output bytes that the last-level cache cannot hold, over the
-- bandwidth. Compute: the useful operations over the highest dense rate at which the GPU multiplies the widest of the
-- operands, be it in a wider format where it has no unit for theirs. The floor is the larger of the two.
WITH pairs AS (
    SELECT DISTINCT workload_digest, hardware FROM parts_runs
),

gpus AS ( -- the row whose match stands as a word in the hardware name; the longest wins
    SELECT pairs.hardware, peaks.*
    FROM (SELECT DISTINCT hardware FROM pairs) AS pairs
    JOIN peaks
        ON regexp_matches(pairs.hardware, '(^|[^\pL\pN])' || regexp_escape(peaks.match) || '([^\pL\pN]|$)', 'i')
    WHERE peaks.peaks = 'datasheet-v2'
    QUALIFY row_number() OVER (PARTITION BY pairs.hardware ORDER BY length(peaks.match) DESC, peaks.match) = 1
),

widths (class, width, formats) AS ( -- operands from narrow to wide, and the formats that hold all of their values
    VALUES
        ('fp4', 1, ['fp4', 'fp6', 'fp8', 'int8', 'bf16', 'tf32', 'fp32']), -- twice an e2m1 value is a small integer
        ('fp6', 2, ['fp6', 'fp8', 'bf16', 'tf32', 'fp32']),
        ('fp8', 3, ['fp8', 'bf16', 'tf32', 'fp32']),
        ('int8', 4, ['int8', 'bf16', 'tf32', 'fp32']),
        ('bf16', 5, ['bf16', 'tf32', 'fp32']), -- and fp16, which runs at the same rate
        ('tf32', 6, ['tf32', 'fp32'])
),

widest AS (
    SELECT workload_digest, arg_max(formats, width) AS formats
    FROM (SELECT workload_digest, unnest(classes) AS class FROM floor_terms)
    LEFT JOIN widths USING (class)
    GROUP BY workload_digest
    HAVING count(*) = count(width) -- an operand of an unknown class may run at any rate
),

rates AS (
    UNPIVOT (
        SELECT
            hardware,
            fp4_tflops AS fp4,
            fp6_tflops AS fp6,
            fp8_tflops AS fp8,
            int8_tops AS int8,
            bf16_tflops AS bf16,
            tf32_tflops AS tf32,
            fp32_tflops AS fp32
        FROM gpus
    )
    ON fp4, fp6, fp8, int8, bf16, tf32, fp32 INTO NAME format VALUE tflops
),

best AS ( -- of equal rates the narrowest format
    SELECT
        workload_digest,
        hardware,
        max(tflops) AS peak_tflops,
        arg_max(format, (tflops, -list_position(formats, format))) AS peak_class
    FROM widest
    JOIN rates ON list_contains(formats, format)
    GROUP BY workload_digest, hardware
),

terms AS (
    SELECT
        pairs.workload_digest,
        pairs.hardware,
        family,
        gpus.label,
        hbm_gb_s,
        l2_mib,
        greatest(term.output_bytes - l2_mib * 1048576, 0) AS excess_bytes,
        term.input_bytes,
        term.input_bytes + coalesce(excess_bytes, 0) AS bytes_moved,
        operations,
        best.peak_tflops,
        best.peak_class,
        memory,
        work,
        term.assumptions
    FROM pairs
    JOIN floor_facts USING (workload_digest)
    LEFT JOIN floor_terms AS term USING (workload_digest)
    LEFT JOIN gpus USING (hardware)
    LEFT JOIN best USING (workload_digest, hardware)
)

SELECT
    workload_digest,
    hardware,
    'headroom-v2' AS model,
    'datasheet-v2' AS peaks,
    label AS gpu,
    bytes_moved,
    hbm_gb_s,
    bytes_moved / hbm_gb_s AS dram_ns,
    operations,
    if(operations IS NULL, NULL, peak_tflops) AS peak_tflops,
    if(operations IS NULL, NULL, peak_class) AS peak_class,
    operations / (peak_tflops * 1000) AS compute_ns,
    if(dram_ns IS NULL, NULL, greatest(dram_ns, compute_ns)) AS floor_ns,
    CASE WHEN compute_ns > dram_ns THEN 'compute' WHEN dram_ns IS NOT NULL THEN 'dram' END AS bound_by,
    list_filter(list_concat([
        CASE
            WHEN memory IS NULL THEN format('no_formula: nothing is proved of this shape of the family {}', family)
            WHEN label IS NULL THEN format('no_datasheet: {} does not know {}', peaks, hardware)
            ELSE format('{}: {:,.15g} B ({:,.15g} GB/s, {} datasheet)', memory, input_bytes, hbm_gb_s, label)
        END,
        if(excess_bytes > 0, format(
            'of the outputs {:,.15g} B do not fit the cache of {:.15g} MiB', excess_bytes, l2_mib
        ), NULL),
        if(compute_ns IS NOT NULL, format(
            '{} at the dense {} peak ({:,.15g} TFLOP/s)', work, peak_class, peak_tflops
        ), NULL),
        if(dram_ns IS NOT NULL, 'cold_cache: inputs come from memory, since the harness flushes the L2 before a timed '
            || 'call; versions that copy the inputs after that leave up to an L2 of them warm', NULL)
    ], if(dram_ns IS NULL, [], assumptions)), lambda sentence: sentence IS NOT NULL) AS assumptions
FROM terms
