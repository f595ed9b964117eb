-- Record history, history-v1, with the record band of each profile's ranking policy (ranking-v1: a band of 1).
-- At any instant the holder of a cohort is the one that a walk over the runs that have standing then gives: in the
-- order of (observed_at, run digest), a run takes the record where the holder's latency is over record_band times its
-- own. A row is a change of holder, by a new run or by a change of standing; a cohort without any such run has no
-- holder. Made from scratch at every build, so the order of arrival changes nothing.
WITH members AS (
    SELECT profile, cohort_key, run_digest, latency_ns, observed_at
    FROM cohort_runs
    WHERE qualified
),

instants AS ( -- where the standing of a member changes, losses before gains
    SELECT profile, cohort_key, run_digest, since AS "at", cause
    FROM suspensions
    JOIN members USING (run_digest)
    UNION ALL
    SELECT profile, cohort_key, run_digest, until, 'reinstated'
    FROM suspensions
    JOIN members USING (run_digest)
    WHERE until IS NOT NULL
),

epochs AS ( -- between two such instants a cohort only gains new runs; what is measured at an instant comes before it
    SELECT profile, cohort_key, "at" AS since, lead("at", 1, 'infinity') OVER cohort AS until
    FROM (
        SELECT DISTINCT profile, cohort_key, '-infinity'::TIMESTAMP AS "at" FROM members
        UNION
        SELECT profile, cohort_key, "at" FROM instants
    )
    WINDOW cohort AS (PARTITION BY profile, cohort_key ORDER BY "at")
),

standing_members AS (
    SELECT member.*, epoch.since
    FROM members AS member
    JOIN epochs AS epoch
        ON
            member.profile = epoch.profile
            AND member.cohort_key = epoch.cohort_key
            AND member.observed_at <= epoch.until
    WHERE NOT EXISTS (
        FROM suspensions
        WHERE
            suspensions.run_digest = member.run_digest
            AND suspensions.since <= epoch.since
            AND (suspensions.until IS NULL OR suspensions.until > epoch.since)
    )
),

improvements AS ( -- runs faster than all before in their epoch's walk: only these can take the record
    SELECT *
    FROM standing_members
    WINDOW earlier AS (
        PARTITION BY profile, cohort_key, since
        ORDER BY observed_at, run_digest
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
    QUALIFY latency_ns < min(latency_ns) OVER earlier OR min(latency_ns) OVER earlier IS NULL
),

latencies AS (
    SELECT profile, cohort_key, since, list_sort(list(latency_ns), 'DESC') AS descending
    FROM improvements
    GROUP BY profile, cohort_key, since
),

records AS ( -- the latencies of those that take it
    SELECT
        profile,
        cohort_key,
        since,
        unnest(CASE
            WHEN record_band = 1 THEN descending
            ELSE list_reduce(
                list_transform(descending, lambda latency: [latency]),
                lambda kept, next: if(kept[-1] > record_band * next[1], kept || next, kept)
            )
        END) AS latency_ns
    FROM latencies
    JOIN profiles USING (profile)
),

holders AS (
    SELECT
        profile,
        cohort_key,
        since,
        run_digest,
        latency_ns,
        greatest(observed_at, since) AS "at",
        observed_at > since AS new
    FROM records
    JOIN improvements USING (profile, cohort_key, since, latency_ns)
),

steps AS ( -- who holds the record when an epoch begins, if anybody, then each new run that takes it
    SELECT epoch.profile, epoch.cohort_key, epoch.since, run_digest, latency_ns, epoch.since AS "at", false AS new
    FROM epochs AS epoch
    LEFT JOIN holders AS holder
        ON
            epoch.profile = holder.profile
            AND epoch.cohort_key = holder.cohort_key
            AND epoch.since = holder.since
            AND NOT holder.new
    QUALIFY row_number() OVER (PARTITION BY epoch.profile, epoch.cohort_key, epoch.since ORDER BY latency_ns) = 1
    UNION ALL
    FROM holders
    WHERE new
),

events AS (
    SELECT
        *,
        lag(run_digest) OVER history AS previous_run_digest,
        lag(latency_ns) OVER history AS previous_latency_ns
    FROM steps
    WINDOW history AS (PARTITION BY profile, cohort_key ORDER BY since, new, latency_ns DESC)
    QUALIFY run_digest IS DISTINCT FROM previous_run_digest
),

causes AS ( -- the old holder's loss, else the new one's return, else the first by name of what changed then
    SELECT
        event.profile,
        event.cohort_key,
        event."at",
        arg_min(
            instant.cause,
            (
                CASE
                    WHEN instant.run_digest = previous_run_digest THEN 1
                    WHEN instant.run_digest = event.run_digest THEN 2
                    ELSE 3
                END,
                instant.cause
            )
        ) AS cause
    FROM events AS event
    JOIN instants AS instant USING (profile, cohort_key, "at")
    WHERE NOT new
    GROUP BY ALL
)

SELECT
    event.profile,
    event.cohort_key,
    row_number() OVER (
        PARTITION BY event.profile, event.cohort_key ORDER BY event.since, new, latency_ns DESC
    ) AS position,
    run_digest,
    previous_run_digest,
    latency_ns,
    previous_latency_ns,
    previous_latency_ns / latency_ns AS improvement,
    event."at",
    if(new, 'new_run', causes.cause) AS cause,
    policy_version
FROM events AS event
JOIN profiles USING (profile)
LEFT JOIN causes USING (profile, cohort_key, "at")
