-- Operations, merge-v1: one row a digest. Several definitions may share it (names, descriptions and reference code
-- are no part of it): the latest pull wins, within a pull the smallest name.
SELECT parts.*
FROM parts_operations AS parts
JOIN snapshots USING (snapshot_id)
QUALIFY
    row_number() OVER (
        PARTITION BY operation_digest
        ORDER BY sequence DESC, name, definition_sha256
    ) = 1
