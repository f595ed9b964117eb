-- Implementations, merge-v1: one row a digest. Where several solutions share it, generated code never reads as a
-- baseline; then the smallest name and path. The first revision is that of the earliest pull.
SELECT
    parts.* EXCLUDE (first_revision),
    first_value(first_revision) OVER (PARTITION BY implementation_digest ORDER BY sequence) AS first_revision
FROM parts_implementations AS parts
JOIN snapshots USING (snapshot_id)
QUALIFY
    row_number() OVER (
        PARTITION BY implementation_digest
        ORDER BY role = 'baseline', name, source_path, sequence, solution_sha256
    ) = 1
