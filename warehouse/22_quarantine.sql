-- Quarantine, held-back-v1: what is held back now. Of each record (by its bytes) or file (by its path) of a trace set
-- the latest outcome counts, unless a pull at or after that outcome let it in.
WITH latest AS (
    SELECT *, if(source_line IS NULL, source_file, kind || ' ' || raw_sha256) AS held
    FROM parts_quarantine
    QUALIFY row_number() OVER (PARTITION BY scope, held ORDER BY sequence DESC, source_file, source_line, reason) = 1
),

released AS (
    SELECT scope, if(source_line IS NULL, source_file, kind || ' ' || raw_sha256) AS held, max(sequence) AS sequence
    FROM parts_releases
    GROUP BY ALL
)

SELECT latest.* EXCLUDE (held)
FROM latest
LEFT JOIN released USING (scope, held)
WHERE released.sequence IS NULL OR released.sequence < latest.sequence
