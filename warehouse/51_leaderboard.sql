-- Ranks, by the policy of each profile (ranking-v1: a band of 1, so only equal latencies share a rank).
-- Walking up from the fastest run of a cohort, a rank group starts at its fastest run and holds all up to tie_band
-- times that; the next run starts the next dense rank. Inside a rank the order is of display only: stronger evidence,
-- newer observation, run digest. Every run is ranked, and nothing is ranked by speedup_factor.
WITH ranked AS NOT MATERIALIZED (
    SELECT profile, cohort_key, run_digest, implementation_digest, latency_ns, observed_at, evidence_level
    FROM cohort_runs
    WHERE ranked
),

boards AS ( -- one a cohort
    SELECT
        profile,
        cohort_key,
        row_number() OVER () AS board, -- a short key
        tie_band,
        floor_model,
        any_value(run_digest) AS example,
        min(latency_ns) AS best_ns,
        min(latency_ns) FILTER (role = 'baseline') AS baseline_ns
    FROM ranked
    JOIN profiles USING (profile)
    JOIN implementations USING (implementation_digest)
    GROUP BY profile, cohort_key, tie_band, floor_model
),

groups AS ( -- the fastest latency of each rank group; without a band every latency starts its own
    SELECT
        board,
        list_reduce(
            list_transform(list_sort(list(DISTINCT latency_ns)), lambda latency: [latency]),
            lambda kept, next: if(next[1] > tie_band * kept[-1], kept || next, kept)
        ) AS starts
    FROM ranked
    JOIN boards USING (profile, cohort_key)
    WHERE tie_band > 1
    GROUP BY board, tie_band
),

levels AS ( -- runs of one level share a rank
    SELECT
        board,
        run_digest,
        implementation_digest,
        latency_ns,
        observed_at,
        evidence_level,
        coalesce(len(list_filter(starts, lambda start: start <= latency_ns)), latency_ns) AS level
    FROM ranked
    JOIN boards USING (profile, cohort_key)
    LEFT JOIN groups USING (board)
),

ranks AS (
    SELECT
        *,
        dense_rank() OVER (PARTITION BY board ORDER BY level) AS rank,
        coalesce(level IN (lag(level) OVER display, lead(level) OVER display), false) AS tied,
        row_number() OVER display AS position
    FROM levels
    WINDOW display AS (
        PARTITION BY board
        ORDER BY
            level,
            list_position(['replicated', 'verified', 'reproducible', 'reported'], evidence_level),
            observed_at DESC,
            run_digest
    )
),

described AS (
    SELECT boards.*, operation.name AS operation, run.hardware, axes, floor_ns
    FROM boards
    JOIN runs AS run ON example = run.run_digest
    JOIN operations AS operation ON run.operation_digest = operation.operation_digest
    JOIN workloads AS workload ON run.workload_digest = workload.workload_digest
    LEFT JOIN floor_estimates AS floor
        ON
            run.workload_digest = floor.workload_digest
            AND run.hardware = floor.hardware
            AND floor_model = floor.model
)

SELECT
    board.profile,
    board.cohort_key,
    rank,
    tied,
    position,
    run_digest,
    operation,
    implementation.name AS implementation,
    implementation_digest,
    author,
    role,
    board.hardware,
    axes,
    ranks.latency_ns,
    ranks.latency_ns / best_ns AS vs_best,
    ranks.latency_ns / baseline_ns AS vs_baseline,
    floor_ns,
    ranks.latency_ns / nullif(floor_ns, 0) AS vs_floor,
    ranks.evidence_level,
    flags,
    ranks.observed_at
FROM ranks
JOIN described AS board USING (board)
JOIN implementations AS implementation USING (implementation_digest)
JOIN runs AS run USING (run_digest)
