-- Facts for the floors, headroom-v2: which formula fits a workload, by the family of its operation and the names of its
-- inputs. Each formula is one file, floor_terms.<formula>; where none fits, nothing is proved.
WITH constants AS (
    SELECT operation_digest, json_group_object(axis.key, axis.value -> 'value') AS constants
    FROM operations, json_each(manifest, '$.spec.axes') AS axis
    WHERE axis.value ->> 'role' = 'constant'
    GROUP BY operation_digest
),

bound AS (
    SELECT workload_digest, json_merge_patch(coalesce(constants, '{}'), axes) AS axes
    FROM workloads
    LEFT JOIN constants USING (operation_digest)
),

tensors AS (
    SELECT
        workload_digest,
        list(name) FILTER (role = 'input') AS inputs,
        sum(bytes) FILTER (role = 'input') AS input_bytes,
        sum(bytes) FILTER (role = 'output') AS output_bytes
    FROM floor_tensors
    GROUP BY workload_digest
)

SELECT
    workload_digest,
    family,
    CASE
        WHEN family IN ('gemm', 'gemv', 'linear', 'matmul', 'batched-gemm', 'grouped-gemm')
            THEN if(
                family = 'grouped-gemm' OR list_has_any(inputs, ['m_indices', 'masked_m', 'm_indptr']),
                'grouped_gemm',
                'gemm'
            )
        WHEN family IN ('gqa-paged', 'mla-paged') THEN 'paged_attention'
        WHEN family IN ('gqa-ragged', 'mla-ragged') THEN 'ragged_attention'
        WHEN family = 'dsa-paged' AND list_contains(inputs, 'sparse_indices') THEN 'sparse_attention'
        WHEN family = 'dsa-paged' AND list_has_all(inputs, ['seq_lens', 'block_table']) THEN 'sparse_indexer'
        WHEN family IN ('rmsnorm', 'moe', 'gdn', 'sampling', 'elementwise') THEN family
    END AS formula,
    bound.axes,
    len(list_filter(tags, lambda tag: regexp_matches(tag, '^sparsity[-:]2[-:]4$'))) > 0 AS structured_sparse,
    coalesce(
        bound.axes ->> 'top_k',
        bound.axes ->> 'topk',
        nullif(regexp_extract(operation.name, 'topk(\d+)', 1), '')
    )::BIGINT AS topk,
    coalesce(input_bytes, 0) AS input_bytes,
    coalesce(output_bytes, 0) AS output_bytes
FROM workloads AS workload
JOIN operations AS operation USING (operation_digest)
JOIN bound USING (workload_digest)
LEFT JOIN tensors USING (workload_digest)
