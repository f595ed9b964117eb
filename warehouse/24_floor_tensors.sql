-- Tensors for the floors, headroom-v2: bytes as stored, and what the values are to a multiplier.
-- The class is what the name says (b_fp6), else the narrowest format that the operation's tags name (its operands lie
-- on that format's grid, whatever they are stored in), else the dtype's own.
WITH dtypes (width_bytes, class, names) AS (
    VALUES
        (0.5, 'fp4', ['fp4', 'nvfp4', 'mxfp4', 'float4_e2m1', 'float4_e2m1fn']),
        (0.5, NULL, ['int4', 'uint4']),
        (1, 'fp8', ['fp8', 'e4m3', 'e5m2', 'fp8_e4m3', 'fp8_e4m3fnuz', 'fp8_e5m2', 'fp8_e5m2fnuz']),
        (1, 'int8', ['int8', 'uint8']),
        (1, NULL, ['bool', 'e8m0', 'float8_e8m0fnu']),
        (2, 'bf16', ['bf16', 'fp16']),
        (2, NULL, ['int16', 'uint16']),
        (4, 'tf32', ['fp32', 'tf32']),
        (4, NULL, ['int32', 'uint32']),
        (8, NULL, ['fp64', 'int64', 'uint64'])
),

tagged AS (
    SELECT
        workload_digest,
        list_min(list_filter(
            list_transform(tags, lambda tag: regexp_extract(tag, '^quant(?:ization)?[-:](?:float|fp)(4|6|8)', 1)),
            lambda bits: bits != ''
        )) AS bits
    FROM workloads
    JOIN operations USING (operation_digest)
)

SELECT
    workload_digest,
    role,
    position,
    name,
    shape,
    coalesce(list_product(shape), 1) AS elements, -- a DOUBLE: hostile shapes overflow no integer
    width_bytes,
    elements * coalesce(width_bytes, 0) AS bytes,
    coalesce(
        nullif(regexp_extract(name, '(?:^|_)(?:nv|mx)?(fp[468])(?:_|$)', 1), ''),
        if(role = 'input' AND class IS NOT NULL, 'fp' || bits, NULL),
        class
    ) AS class,
    generator IS NOT NULL AS described
FROM workload_tensors
LEFT JOIN (SELECT width_bytes, class, unnest(names) AS dtype FROM dtypes) USING (dtype)
LEFT JOIN tagged USING (workload_digest)
