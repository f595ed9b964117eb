-- Cohort membership. source_native (ranking-v1): the published comparison key; every eligible run is ranked.
SELECT
    'source_native' AS profile,
    comparison_key AS cohort_key,
    run_digest,
    eligible AS ranked
FROM runs
