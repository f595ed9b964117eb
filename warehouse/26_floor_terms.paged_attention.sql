-- Floor of attention over a paged cache (grouped query or latent), headroom-v2.
-- Of the cache only what the page indices name is read: of num_kv_indices pages each sequence fills all but its last,
-- and that holds one token at least, so tokens = (indices - sequences)·page_size + sequences, never more than the
-- pool. Queries and indices are read whole. A decoding query meets every token of its sequence. In prefill the queries
-- are the last tokens of their sequence and the mask is causal: of one sequence query i of Q meets K - Q + i tokens,
-- together Q·K - Q·(Q - 1)/2; of several only the sums are known, and the pairs are at least Q·(Q/S + 1)/2 (each meets
-- itself and those before it, least where all sequences are equal) and at least K + Q - S (the last query meets all
-- K). A pair costs a product of the key's width and one of the value's width in each query head.
WITH caches AS (
    SELECT
        workload_digest,
        sum(bytes) AS cache_bytes,
        min(shape[1]) AS pages,
        sum(list_product(shape[2:]) * width_bytes) AS page_bytes,
        any_value(shape[2]) AS second
    FROM floor_tensors
    WHERE role = 'input' AND contains(name, 'cache')
    GROUP BY workload_digest
),

queries AS (
    SELECT workload_digest, any_value(shape[1])::DOUBLE AS q, any_value(shape[2])::DOUBLE AS heads, sum(shape[3]) AS key
    FROM floor_tensors
    WHERE role = 'input' AND name IN ('q', 'q_nope', 'q_pe')
    GROUP BY workload_digest
),

classes AS (
    SELECT workload_digest, list(class) AS classes
    FROM floor_tensors
    WHERE role = 'input' AND (contains(name, 'cache') OR name IN ('q', 'q_nope', 'q_pe'))
    GROUP BY workload_digest
),

others AS (
    SELECT
        workload_digest,
        max(elements) FILTER (name = 'kv_indices') AS indices,
        max(elements) FILTER (name = 'kv_indptr') - 1 AS pointers,
        bool_or(name = 'qo_indptr') AS prefill,
        max(shape[3]) FILTER (role = 'output' AND position = 0) AS value
    FROM floor_tensors
    GROUP BY workload_digest
),

counts AS (
    SELECT
        *,
        coalesce((axes ->> 'page_size')::DOUBLE, second) AS page_size,
        greatest(pointers, coalesce((axes ->> 'batch_size')::DOUBLE, 0)) AS s,
        least(s, indices) AS last_pages,
        (indices - last_pages) * page_size + last_pages AS named,
        if(prefill AND q < s, least(named, q), named) AS tokens -- fewer queries than sequences: some meet nothing
    FROM floor_facts
    JOIN caches USING (workload_digest)
    JOIN queries USING (workload_digest)
    JOIN classes USING (workload_digest)
    JOIN others USING (workload_digest)
    WHERE formula = 'paged_attention' AND indices IS NOT NULL AND pointers IS NOT NULL
),

pairs AS (
    SELECT
        *,
        CASE
            WHEN NOT prefill OR q > indices * page_size OR q < s THEN tokens
            WHEN s = 1 THEN q * greatest(tokens, q) - q * (q - 1) / 2
            ELSE greatest(q * (q / s + 1) / 2, tokens + q - s)
        END AS pairs
    FROM counts
)

SELECT
    workload_digest,
    input_bytes - cache_bytes + least(tokens, pages * page_size) * page_bytes / page_size AS input_bytes,
    output_bytes,
    2 * heads * pairs * (key + value) AS operations,
    classes,
    format(
        'queries, indices and at least {:.15g} cached tokens of {:.15g} B are read',
        least(tokens, pages * page_size), page_bytes / page_size
    ) AS memory,
    format(
        '2·{:.15g} heads·{:.15g} pairs·({:.15g}+{:.15g})', heads, pairs, key::DOUBLE, value::DOUBLE
    ) AS work,
    list_filter([
        'distinct_indices: no two page indices name the same page',
        if(prefill, 'queries_everywhere: every sequence has a query', NULL),
        if(prefill AND q <= indices * page_size, 'causal_suffix: queries are the last tokens of their sequence', NULL),
        if(
            prefill AND q > indices * page_size,
            'torn_axes: more queries than the pages hold, so only each token counts',
            NULL
        ),
        if(pages = 0, 'empty_pool: the axes give the cache no page, so none of it counts', NULL)
    ], lambda sentence: sentence IS NOT NULL) AS assumptions
FROM pairs
