-- Floors, headroom-v1 with the peaks published-v1, as published: no true bound, since it counts a paged cache whole.
-- Memory: bytes of the declared input tensors over the datasheet bandwidth. Compute, for matrix products only:
-- 2·batch·M·N·K over the highest dense peak among the dtypes' classes. The floor is the larger of the two.
WITH pairs AS (
    SELECT DISTINCT workload_digest, hardware FROM parts_runs
),

gpus AS ( -- the row whose match stands as a word in the hardware name; the longest wins
    SELECT pairs.hardware, peaks.*
    FROM (SELECT DISTINCT hardware FROM pairs) AS pairs
    JOIN peaks
        ON regexp_matches(pairs.hardware, '(^|[^\pL\pN])' || regexp_escape(peaks.match) || '([^\pL\pN]|$)', 'i')
    WHERE peaks.peaks = 'published-v1'
    QUALIFY row_number() OVER (PARTITION BY pairs.hardware ORDER BY length(peaks.match) DESC, peaks.match) = 1
),

rates AS (
    UNPIVOT (SELECT hardware, fp4_tflops AS fp4, fp8_tflops AS fp8, bf16_tflops AS bf16, tf32_tflops AS tf32 FROM gpus)
    ON fp4, fp8, bf16, tf32 INTO NAME class VALUE tflops
),

dtypes (width_bytes, class, names) AS ( -- any other dtype is skipped
    VALUES
        (0.5, 'fp4', ['fp4', 'nvfp4', 'mxfp4']),
        (0.5, NULL, ['int4']),
        (1, 'fp8', ['fp8', 'e4m3', 'e5m2', 'fp8_e4m3', 'fp8_e4m3fnuz', 'fp8_e5m2']),
        (1, NULL, ['int8', 'uint8']),
        (2, 'bf16', ['bf16', 'fp16']),
        (2, NULL, ['int16']),
        (4, 'tf32', ['fp32', 'tf32']),
        (4, NULL, ['int32']),
        (8, NULL, ['fp64', 'int64'])
),

inputs AS (
    SELECT *, coalesce(list_product(shape), 1) AS elements -- a DOUBLE: hostile shapes overflow no integer
    FROM workload_tensors
    WHERE role = 'input'
),

memory AS (
    SELECT inputs.workload_digest, sum(elements * width_bytes) AS bytes_moved, list(DISTINCT class) AS classes
    FROM inputs
    JOIN (SELECT width_bytes, class, unnest(names) AS dtype FROM dtypes) USING (dtype)
    GROUP BY inputs.workload_digest
),

operands AS ( -- the operands of a product are taken to be the two shortest names
    SELECT workload_digest, list(shape::DOUBLE[] ORDER BY length(name), name) AS operands
    FROM inputs
    GROUP BY workload_digest
),

shapes AS (
    SELECT
        workload_digest,
        [axes ->> 'm', axes ->> 'n', axes ->> 'k']::DOUBLE[] AS bound,
        coalesce(axes ->> 'batch', axes ->> 'b', '1')::DOUBLE AS batch,
        operands[1] AS a,
        operands[2] AS b
    FROM workloads
    JOIN operations USING (operation_digest)
    LEFT JOIN operands USING (workload_digest)
    WHERE family IN ('gemm', 'gemv', 'linear', 'matmul', 'batched-gemm')
),

products AS (
    SELECT
        workload_digest,
        batch,
        CASE
            WHEN len(list_filter(bound, lambda axis: axis IS NOT NULL)) = 3 THEN bound
            WHEN len(a) >= 2 AND len(b) >= 2 THEN [a[-2], if(b[-2] = a[-1], b[-1], b[-2]), a[-1]]
        END AS mnk,
        2 * batch * list_product(mnk) AS operations
    FROM shapes
),

compute AS (
    SELECT
        memory.workload_digest,
        rates.hardware,
        any_value(mnk) AS mnk,
        any_value(batch) AS batch,
        any_value(operations) AS operations,
        max(tflops) AS peak_tflops,
        arg_max(class, (tflops, class)) AS peak_class
    FROM products
    JOIN memory USING (workload_digest)
    JOIN rates ON list_contains(memory.classes, rates.class)
    WHERE operations IS NOT NULL
    GROUP BY ALL
)

SELECT
    pairs.workload_digest,
    pairs.hardware,
    'headroom-v1' AS model,
    gpus.peaks,
    gpus.label AS gpu,
    bytes_moved,
    hbm_gb_s,
    bytes_moved / hbm_gb_s AS dram_ns,
    operations,
    peak_tflops,
    peak_class,
    operations / (peak_tflops * 1000) AS compute_ns,
    greatest(dram_ns, compute_ns) AS floor_ns,
    if(compute_ns > dram_ns, 'compute', 'dram') AS bound_by,
    list_filter([
        format('every declared tensor crosses HBM exactly once ({:,.15g} GB/s, {} datasheet)', hbm_gb_s, gpu),
        format(
            '2·{}M·N·K with {}M={:.15g}, N={:.15g}, K={:.15g} at the dense {} peak ({:,.15g} TFLOP/s)',
            if(batch = 1, '', 'batch·'),
            if(batch = 1, '', format('batch={:.15g}, ', batch)),
            mnk[1], mnk[2], mnk[3], peak_class, peak_tflops
        )
    ], lambda sentence: sentence IS NOT NULL) AS assumptions
FROM pairs
JOIN gpus USING (hardware)
JOIN memory USING (workload_digest)
LEFT JOIN compute USING (workload_digest, hardware)
