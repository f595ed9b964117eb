-- Floor of a mixture of experts, headroom-v2.
-- The routing decides which experts work, so the routing inputs are read. A token goes to topk experts, of which all
-- but topk - (experts - local experts) may lie on other devices; so many local experts work at least, all tokens
-- perhaps on the same ones: their weights and the tokens are read, and each token costs the two products of each of
-- them.
WITH shapes AS (
    SELECT
        workload_digest,
        (axes ->> 'num_local_experts')::DOUBLE AS local,
        coalesce((axes ->> 'num_experts')::DOUBLE, local) AS experts,
        (axes ->> 'hidden_size')::DOUBLE AS hidden,
        (axes ->> 'intermediate_size')::DOUBLE AS inner_size,
        coalesce((axes ->> 'gemm1_out_size')::DOUBLE, 2 * inner_size) AS gemm1
    FROM floor_facts
    WHERE formula = 'moe'
),

arguments AS (
    SELECT
        workload_digest,
        max(shape[1]) FILTER (name = 'hidden_states')::DOUBLE AS tokens,
        coalesce(sum(bytes) FILTER (starts_with(name, 'hidden_states')), 0) AS token_bytes,
        coalesce(sum(bytes) FILTER (contains(name, 'weights') AND shape[1] = local), 0) AS weight_bytes,
        list(class) FILTER (name IN ('hidden_states', 'gemm1_weights', 'gemm2_weights')) AS classes
    FROM floor_tensors
    JOIN shapes USING (workload_digest)
    WHERE role = 'input'
    GROUP BY workload_digest
),

routed AS (
    SELECT
        *,
        if(tokens > 0, greatest(least(coalesce(topk, 1), experts) - (experts - local), 0), 0) AS working
    FROM floor_facts
    JOIN shapes USING (workload_digest)
    JOIN arguments USING (workload_digest)
)

SELECT
    workload_digest,
    input_bytes - weight_bytes - token_bytes + if(working > 0, token_bytes + weight_bytes * working / local, 0)
        AS input_bytes,
    output_bytes,
    if(working > 0, 2 * tokens * working * hidden * (gemm1 + inner_size), NULL) AS operations,
    if(working > 0, classes, []) AS classes,
    if(
        working > 0,
        format('routing, tokens and the weights of {:.15g} of {:.15g} experts are read', working, local),
        'the routing is read; all experts that work may lie elsewhere'
    ) AS memory,
    if(working > 0, format(
        '2·{:.15g} tokens·{:.15g} experts·{:.15g}·({:.15g}+{:.15g})', tokens, working, hidden, gemm1, inner_size
    ), NULL) AS work,
    ['same_experts: all tokens may be routed to the same experts'] AS assumptions
FROM routed
