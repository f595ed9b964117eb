-- Floor of a dense matrix product, headroom-v2.
-- Every element of both operands enters the result, so all inputs are read; each of the M·N results sums K products, so
-- 2·batch·M·N·K operations. M, N, K are the axes of that name (K counts elements, however they are packed), else the
-- last dimensions of the result and of the first operand. With 2:4 sparsity half of the products are by zeros that are
-- not stored; the vendors' sparse peaks count those too, so the useful half runs at the dense peak.
-- The multiplier takes both operands in one format, so the wider one sets the rate.
WITH operands AS (
    SELECT
        workload_digest,
        list(class ORDER BY position) AS classes,
        arg_min(if(class = 'fp4' AND width_bytes > 0.5, NULL, shape[-1]), position) AS last
    FROM floor_tensors
    WHERE role = 'input' AND len(shape) > 0 AND NOT regexp_matches(name, 'scale|meta|bias|_sf$')
    GROUP BY workload_digest
),

results AS (
    SELECT workload_digest, shape AS result
    FROM floor_tensors
    WHERE role = 'output' AND position = 0
),

shapes AS (
    SELECT
        *,
        coalesce(axes ->> 'm', result[-2]::VARCHAR, '1')::DOUBLE AS m,
        coalesce(axes ->> 'n', result[-1]::VARCHAR)::DOUBLE AS n,
        coalesce(axes ->> 'k', last::VARCHAR)::DOUBLE AS k,
        coalesce(axes ->> 'batch', axes ->> 'b', '1')::DOUBLE AS batch
    FROM floor_facts
    LEFT JOIN operands USING (workload_digest)
    LEFT JOIN results USING (workload_digest)
    WHERE formula = 'gemm'
)

SELECT
    workload_digest,
    input_bytes,
    output_bytes,
    if(structured_sparse, 1, 2) * batch * m * n * k AS operations,
    classes,
    'every operand is read once' AS memory,
    format(
        '{}{}M·N·K with {}M={:.15g}, N={:.15g}, K={:.15g}{}',
        if(structured_sparse, '', '2·'),
        if(batch = 1, '', 'batch·'),
        if(batch = 1, '', format('batch={:.15g}, ', batch)),
        m, n, k,
        if(structured_sparse, ' (two of four values are zero)', '')
    ) AS work,
    [] AS assumptions
FROM shapes
