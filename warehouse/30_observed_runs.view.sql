-- Runs as observed, observed-v1: each run with the place of its first observation (order of pulls, then file, then
-- line) and what all its observations say.
WITH observed AS (
    SELECT
        run_digest,
        min({'sequence': sequence, 'file': source_file, 'line': source_line}) AS first,
        min(workload_uuid) AS workload_uuid,
        min(inputs_sha256) AS inputs_sha256,
        bool_and(timezone_assumed) AS timezone_assumed,
        bool_or(error_not_finite) AS error_not_finite,
        list_sort(list_distinct(flatten(list(legacy_forms) FILTER (len(legacy_forms) > 0)))) AS legacy_forms
    FROM observations
    JOIN snapshots USING (snapshot_id)
    GROUP BY run_digest
)

SELECT
    run.*,
    observed.* EXCLUDE (run_digest, first, legacy_forms),
    coalesce(legacy_forms, []) AS legacy_forms,
    first.file AS source_file,
    first.line AS source_line
FROM parts_runs AS run
LEFT JOIN observed USING (run_digest)
