-- Cohort membership. source_native (ranking-v1): the published comparison key; every eligible run is ranked.
SELECT
    'source_native' AS profile,
    comparison_key AS cohort_key,
    run_digest,
    runs.eligible AS ranked,
    qualified
FROM runs
JOIN standing USING (run_digest)
