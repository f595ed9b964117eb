-- Drift, drift-v1: occurrences of a field or form over all pulls that read its file.
SELECT source_file, path, sum(occurrences) AS occurrences
FROM parts_drift
GROUP BY source_file, path
