-- Floor of attention over selected tokens of a paged latent cache (dsa), headroom-v2.
-- The selection stands in the values of sparse_indices, -1 is padding, and queries may select the same tokens. All
-- that is proved: queries and indices are read, and each query meets one token, which may be the same for all.
WITH arguments AS (
    SELECT
        workload_digest,
        max(shape[1]) FILTER (name IN ('q_nope', 'q_pe', 'q'))::DOUBLE AS q,
        max(shape[2]) FILTER (name IN ('q_nope', 'q_pe', 'q'))::DOUBLE AS heads,
        sum(shape[3]) FILTER (name IN ('q_nope', 'q_pe', 'q'))::DOUBLE AS key,
        sum(bytes) FILTER (contains(name, 'cache')) AS cache_bytes,
        sum(list_product(shape[3:]) * width_bytes) FILTER (contains(name, 'cache')) AS token_bytes,
        max(shape[3]) FILTER (role = 'output' AND position = 0)::DOUBLE AS value,
        list(class) FILTER (contains(name, 'cache') OR name IN ('q_nope', 'q_pe', 'q')) AS classes
    FROM floor_tensors
    GROUP BY workload_digest
)

SELECT
    workload_digest,
    input_bytes - cache_bytes + least(cache_bytes, token_bytes) AS input_bytes,
    output_bytes,
    2 * heads * q * (key + value) AS operations,
    classes,
    'queries, indices and one cached token are read' AS memory,
    format('2·{:.15g} heads·{:.15g} pairs·({:.15g}+{:.15g})', heads, q, key, value) AS work,
    ['some_token: every query selects a token'] AS assumptions
FROM floor_facts
JOIN arguments USING (workload_digest)
WHERE formula = 'sparse_attention'
