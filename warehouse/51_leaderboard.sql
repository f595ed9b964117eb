-- Ranks, by the policy of each profile (ranking-v1: a band of 1, so only equal latencies share a rank).
-- Walking up from the fastest run of a cohort, a rank group starts at its fastest run and holds all up to tie_band
-- times that; the next run starts the next dense rank. Inside a rank the order is of display only: stronger evidence,
-- newer observation, run digest. Every run is ranked, and nothing is ranked by speedup_factor.
WITH ranked AS ( -- narrow: names and shapes join once the sorting is done
    SELECT member.profile, member.cohort_key, run_digest, latency_ns, observed_at, evidence_level, role
    FROM cohort_runs AS member
    JOIN runs USING (run_digest)
    JOIN implementations USING (implementation_digest)
    WHERE member.ranked
),

latencies AS (
    SELECT profile, cohort_key, list_sort(list(DISTINCT latency_ns)) AS ascending
    FROM ranked
    GROUP BY profile, cohort_key
),

starts AS ( -- the fastest latency of each rank group; with a band of 1 every latency starts its own
    SELECT
        profile,
        cohort_key,
        CASE
            WHEN tie_band = 1 THEN ascending
            ELSE list_reduce(
                list_transform(ascending, lambda latency: [latency]),
                lambda kept, next: if(next[1] > tie_band * kept[-1], kept || next, kept)
            )
        END AS starts
    FROM latencies
    JOIN profiles USING (profile)
),

groups AS (
    SELECT profile, cohort_key, unnest(starts) AS latency_ns, generate_subscripts(starts, 1) AS rank
    FROM starts
),

ranks AS (
    SELECT
        ranked.*,
        max(rank) OVER (PARTITION BY ranked.profile, ranked.cohort_key ORDER BY latency_ns) AS rank
    FROM ranked
    LEFT JOIN groups USING (profile, cohort_key, latency_ns)
),

boards AS (
    SELECT
        profile,
        cohort_key,
        run_digest,
        rank,
        coalesce(rank IN (lag(rank) OVER display, lead(rank) OVER display), false) AS tied,
        row_number() OVER display AS position,
        latency_ns / min(latency_ns) OVER board AS vs_best,
        latency_ns / min(latency_ns) FILTER (role = 'baseline') OVER board AS vs_baseline
    FROM ranks
    WINDOW
        board AS (PARTITION BY profile, cohort_key),
        display AS (
            PARTITION BY profile, cohort_key
            ORDER BY
                rank,
                list_position(['replicated', 'verified', 'reproducible', 'reported'], evidence_level),
                observed_at DESC,
                run_digest
        )
)

SELECT
    boards.*,
    operation.name AS operation,
    implementation.name AS implementation,
    implementation_digest,
    author,
    role,
    run.hardware,
    axes,
    latency_ns,
    floor_ns,
    latency_ns / nullif(floor_ns, 0) AS vs_floor,
    evidence_level,
    flags,
    observed_at
FROM boards
JOIN profiles USING (profile)
JOIN runs AS run USING (run_digest)
JOIN implementations AS implementation USING (implementation_digest)
JOIN operations AS operation ON run.operation_digest = operation.operation_digest
JOIN workloads AS workload ON run.workload_digest = workload.workload_digest
LEFT JOIN floor_estimates AS floor
    ON
        run.workload_digest = floor.workload_digest
        AND run.hardware = floor.hardware
        AND floor_model = floor.model
