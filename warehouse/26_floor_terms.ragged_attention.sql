-- Floor of attention over ragged keys and values, headroom-v2.
-- The last query of a sequence meets all of its keys, so queries, keys and values are read whole. The pairs of the
-- causal mask are counted as for the paged cache: Q·K - Q·(Q - 1)/2 of one sequence; of S at least Q·(Q/S + 1)/2 and K
-- + Q - S. A pair costs a product of the key's width and one of the value's width in each query head.
WITH arguments AS (
    SELECT
        workload_digest,
        max(shape[1]) FILTER (name IN ('q', 'q_nope', 'q_pe'))::DOUBLE AS q,
        max(shape[2]) FILTER (name IN ('q', 'q_nope', 'q_pe'))::DOUBLE AS heads,
        sum(shape[3]) FILTER (name IN ('q', 'q_nope', 'q_pe'))::DOUBLE AS key,
        max(shape[1]) FILTER (name = 'v')::DOUBLE AS k,
        max(shape[3]) FILTER (name = 'v')::DOUBLE AS value,
        max(elements) FILTER (name = 'kv_indptr') - 1 AS s,
        list(class) FILTER (name IN ('q', 'q_nope', 'q_pe', 'k', 'v')) AS classes
    FROM floor_tensors
    WHERE role = 'input'
    GROUP BY workload_digest
),

pairs AS (
    SELECT
        *,
        CASE
            WHEN q > k OR q < s THEN k
            WHEN s = 1 THEN q * k - q * (q - 1) / 2
            ELSE greatest(q * (q / s + 1) / 2, k + q - s)
        END AS pairs
    FROM floor_facts
    JOIN arguments USING (workload_digest)
    WHERE formula = 'ragged_attention'
)

SELECT
    workload_digest,
    input_bytes,
    output_bytes,
    2 * heads * pairs * (key + value) AS operations,
    classes,
    'queries, keys and values are read once' AS memory,
    format('2·{:.15g} heads·{:.15g} pairs·({:.15g}+{:.15g})', heads, pairs, key, value) AS work,
    [
        'queries_everywhere: every sequence has a query',
        if(q > k, 'torn_axes: more queries than keys, so only each key counts',
            'causal_suffix: queries are the last tokens of their sequence')
    ] AS assumptions
FROM pairs
