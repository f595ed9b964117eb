-- Cohorts, baseline-v1: a cohort is unbeaten while a baseline is (or equals) its fastest ranked run, beaten when
-- another run is faster, none where no baseline is ranked. Latencies are compared inside the cohort, never with the
-- reference, which is measured anew in each run and drifts.
WITH members AS (
    SELECT
        profile,
        cohort_key,
        any_value(input_identity) AS input_identity,
        any_value(protocol_era) AS protocol_era,
        coalesce(any_value(run_digest) FILTER (latency_ns IS NOT NULL), any_value(run_digest)) AS example,
        count(*) AS runs,
        min(observed_at) AS first_observed_at,
        max(observed_at) AS last_observed_at
    FROM cohort_runs
    GROUP BY profile, cohort_key
),

boards AS (
    SELECT
        profile,
        cohort_key,
        count(*) AS results,
        arg_min(run_digest, (latency_ns, position)) AS best_run_digest,
        min(latency_ns) AS best_latency_ns,
        min(latency_ns) FILTER (role = 'baseline') AS baseline_latency_ns
    FROM leaderboard
    GROUP BY profile, cohort_key
)

SELECT
    members.profile,
    members.cohort_key,
    operation.name AS operation,
    operation.operation_digest,
    workload.workload_digest,
    operation.family,
    workload.axes,
    environment.hardware,
    environment.name AS environment,
    environment.environment_digest,
    protocol.name AS protocol,
    protocol.protocol_digest,
    coalesce('latency:' || primary_statistic || ':ns', 'none') AS metric,
    input_identity,
    protocol_era,
    coalesce(results, 0) AS results,
    runs,
    best_run_digest,
    best_latency_ns,
    CASE
        WHEN baseline_latency_ns IS NULL THEN 'none'
        WHEN baseline_latency_ns = best_latency_ns THEN 'unbeaten'
        ELSE 'beaten'
    END AS baseline_state,
    baseline_latency_ns,
    first_observed_at,
    last_observed_at
FROM members
LEFT JOIN boards USING (profile, cohort_key)
JOIN runs AS run ON example = run.run_digest
JOIN operations AS operation ON run.operation_digest = operation.operation_digest
JOIN workloads AS workload ON run.workload_digest = workload.workload_digest
JOIN environments AS environment ON run.environment_digest = environment.environment_digest
JOIN protocols AS protocol ON run.protocol_digest = protocol.protocol_digest
