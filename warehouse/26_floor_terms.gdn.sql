-- Floor of the gated delta rule, headroom-v2.
-- Every token updates the state, so queries, keys, values and gates are read, and the states of the sequences where
-- they are given: of a pool as many as there are indices. A buffer for states on the way is written, not read, and a
-- pool that is returned may be the one that came. A state of K by V costs each token and head its update, 2·K·V; a
-- single token also k·S and q·S, while a chunk of tokens may share those: 6·K·V against 2·K·V.
WITH arguments AS (
    SELECT
        workload_digest,
        max(elements / (shape[-1] * shape[-2])) FILTER (name = 'q') AS tokens,
        max(shape[-1]) FILTER (name = 'q')::DOUBLE AS key,
        max(shape[-1]) FILTER (name = 'v')::DOUBLE AS value,
        max(shape[-2]) FILTER (name = 'v')::DOUBLE AS heads,
        coalesce(sum(bytes) FILTER (name = 'intermediate_states_buffer'), 0) AS buffer_bytes,
        coalesce(sum(bytes) FILTER (name IN ('state', 'initial_state')), 0) AS state_bytes,
        max(shape[1]) FILTER (name IN ('state', 'initial_state')) AS states,
        bool_or(described) FILTER (name IN ('state', 'initial_state')) AS given,
        max(elements) FILTER (name = 'initial_state_indices') AS indices,
        list(class) FILTER (name IN ('q', 'k', 'v')) AS classes
    FROM floor_tensors
    WHERE role = 'input'
    GROUP BY workload_digest
),

results AS (
    SELECT workload_digest, sum(bytes) FILTER (name != 'final_state') AS written
    FROM floor_tensors
    WHERE role = 'output'
    GROUP BY workload_digest
),

steps AS (
    SELECT
        *,
        if(axes ->> 'seq_len' = '1', 6, 2) AS step,
        CASE
            WHEN NOT coalesce(given, false) THEN 0
            WHEN indices IS NULL THEN state_bytes
            ELSE coalesce(state_bytes / nullif(states, 0), 0) * least(indices, states)
        END AS read_state_bytes
    FROM floor_facts
    JOIN arguments USING (workload_digest)
    LEFT JOIN results USING (workload_digest)
    WHERE formula = 'gdn'
)

SELECT
    workload_digest,
    input_bytes - buffer_bytes - state_bytes + read_state_bytes AS input_bytes,
    coalesce(written, 0) AS output_bytes,
    step * tokens * heads * key * value AS operations,
    classes,
    if(read_state_bytes > 0, 'tokens and states are read once', 'tokens are read once; no state is given') AS memory,
    format(
        '{}·{:.15g} tokens·{:.15g} heads·{:.15g}·{:.15g}', step, tokens, heads, key, value
    ) AS work,
    list_filter([
        if(indices IS NULL, NULL, 'distinct_indices: no two sequences share a state'),
        'tokens_everywhere: every sequence has a token'
    ], lambda sentence: sentence IS NOT NULL) AS assumptions
FROM steps
