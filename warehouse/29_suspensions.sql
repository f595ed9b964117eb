-- Suspensions, standing-v1: the spans of time in which a run has no standing.
-- Withdrawn: from the pull after which every observation of the run is gone from its trace set, until the pull that
-- has one of them again. Corrections: from their date, or from the measurement where that is later, for good.
WITH sightings AS ( -- each observation at each pull that tells of it: there, or gone
    SELECT observation_sha256, implementation_digest, run_digest, sequence, fetched_at AS "at", true AS there
    FROM observations
    JOIN snapshots USING (snapshot_id)
    WHERE run_digest IN (SELECT run_digest FROM presence JOIN observations USING (observation_sha256))
    UNION ALL
    SELECT observation_sha256, implementation_digest, run_digest, sequence, "at", event = 'reinstated' AS there
    FROM presence
    JOIN observations USING (observation_sha256)
),

changes AS (
    SELECT
        *,
        there::INTEGER - coalesce(lag(there) OVER observation, false)::INTEGER AS change
    FROM sightings
    WINDOW observation AS (PARTITION BY observation_sha256, implementation_digest ORDER BY sequence)
),

pulls AS ( -- a run at each pull that tells of it
    SELECT run_digest, sequence, any_value("at") AS "at", sum(sum(change)) OVER run > 0 AS there
    FROM changes
    GROUP BY run_digest, sequence
    WINDOW run AS (PARTITION BY run_digest ORDER BY sequence)
),

turns AS (
    SELECT *
    FROM pulls
    QUALIFY there IS DISTINCT FROM lag(there) OVER (PARTITION BY run_digest ORDER BY sequence)
),

withdrawals AS (
    SELECT run_digest, "at" AS since, lead("at") OVER (PARTITION BY run_digest ORDER BY sequence) AS until, there
    FROM turns
)

SELECT run_digest, 'withdrawn' AS cause, since, until
FROM withdrawals
WHERE NOT there AND (until IS NULL OR until > since)
UNION ALL
SELECT
    run_digest,
    CASE action WHEN 'retract' THEN 'retracted' WHEN 'supersede' THEN 'superseded' ELSE 'taken_down' END AS cause,
    greatest(corrections."at", observed_at) AS since,
    NULL AS until
FROM corrections
JOIN parts_runs USING (run_digest)
