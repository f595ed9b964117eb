-- Floor of a grouped matrix product, headroom-v2.
-- Which rows count stands in the values of the index or mask tensor: masked_m tells how many, m_indices which (-1 is
-- padding). All that is proved is that the tensor is read, and that one row of one group is computed: that row of A,
-- that group of B, 2·N·K operations.
WITH tensors AS (
    SELECT
        workload_digest,
        sum(CASE
            WHEN regexp_matches(name, 'indices|indptr|mask') THEN bytes
            WHEN starts_with(name, 'a_') OR name = 'a'
                THEN coalesce(bytes / nullif(elements / nullif(shape[-1], 0), 0), 0)
            WHEN starts_with(name, 'b_') OR name = 'b' THEN coalesce(bytes / nullif(shape[1], 0), 0)
            ELSE 0
        END) AS proved,
        list(class ORDER BY position) FILTER (regexp_matches(name, '^[ab](_|$)') AND NOT contains(name, 'scale'))
            AS classes
    FROM floor_tensors
    WHERE role = 'input'
    GROUP BY workload_digest
)

SELECT
    workload_digest,
    proved AS input_bytes,
    output_bytes,
    2 * (axes ->> 'n')::DOUBLE * (axes ->> 'k')::DOUBLE AS operations,
    classes,
    'the row indices, one row of A and one group of B are read' AS memory,
    format('2·N·K of one row with N={}, K={}', axes ->> 'n', axes ->> 'k') AS work,
    ['some_row: at least one row belongs to a group'] AS assumptions
FROM floor_facts
JOIN tensors USING (workload_digest)
WHERE formula = 'grouped_gemm'
