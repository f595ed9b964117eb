-- Floor of the selection of tokens for sparse attention (dsa indexer), headroom-v2.
-- A sequence of at most topk tokens is selected whole and needs no score, and how long the sequences are stands in the
-- values of seq_lens. All that is proved: the lengths and the first page of each sequence are read.
WITH arguments AS (
    SELECT
        workload_digest,
        sum(bytes) FILTER (name = 'seq_lens') AS lengths,
        sum(bytes / nullif(shape[2], 0)) FILTER (name = 'block_table') AS first_pages
    FROM floor_tensors
    WHERE role = 'input'
    GROUP BY workload_digest
)

SELECT
    workload_digest,
    lengths + coalesce(first_pages, 0) AS input_bytes,
    output_bytes,
    NULL AS operations,
    [] AS classes,
    'the lengths and the first page of each sequence are read' AS memory,
    NULL AS work,
    ['some_token: every sequence has a token'] AS assumptions
FROM floor_facts
JOIN arguments USING (workload_digest)
WHERE formula = 'sparse_indexer'
