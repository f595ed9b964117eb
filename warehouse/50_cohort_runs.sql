-- Cohort membership, by the policy of each profile.
-- source_native (ranking-v1): the published comparison key; every eligible run is ranked.
-- strict_exact (ranking-v2): also input identity, the workload's uuid where any input comes from a tensor file, and
-- the harness's way of timing, inferred from the time of measurement: CUDA events' mean before 2026-02-24, then the
-- mean over trials of CUPTI medians. The key is the SHA-256 of the JSON of all three. Runs below the floor, and runs
-- whose uuid names several inputs, are shown but not ranked.
WITH inputs AS (
    SELECT benchmark, inputs_sha256, bool_or(tensor_files) AS tensor_files
    FROM workload_inputs
    GROUP BY benchmark, inputs_sha256
),

members AS (
    SELECT
        run_digest,
        implementation_digest,
        latency_ns,
        observed_at,
        evidence_level,
        comparison_key,
        eligible,
        qualified,
        list_sort(list_intersect(flags, ['BELOW_FLOOR', 'UUID_CONFLICT'])) AS shut_out,
        if(tensor_files, workload_uuid, NULL) AS input_identity,
        CASE
            WHEN source = 'flashinfer-bench' AND observed_at < TIMESTAMP '2026-02-24' THEN 'cuda_events_mean'
            WHEN source = 'flashinfer-bench' THEN 'cupti_trial_medians'
        END AS protocol_era
    FROM runs
    LEFT JOIN inputs USING (benchmark, inputs_sha256)
)

SELECT
    'source_native' AS profile,
    comparison_key AS cohort_key,
    run_digest,
    implementation_digest,
    latency_ns,
    observed_at,
    evidence_level,
    eligible AS ranked,
    qualified,
    [] AS shut_out,
    NULL AS input_identity,
    NULL AS protocol_era
FROM members
UNION ALL
SELECT
    'strict_exact' AS profile,
    'sha256:' || sha256(to_json({
        'comparison': comparison_key,
        'era': protocol_era,
        'input': input_identity,
        'v': 2
    })::VARCHAR) AS cohort_key,
    run_digest,
    implementation_digest,
    latency_ns,
    observed_at,
    evidence_level,
    eligible AND len(shut_out) = 0 AS ranked,
    qualified AND len(shut_out) = 0 AS qualified,
    shut_out,
    input_identity,
    protocol_era
FROM members
