-- Record history, by the policy of each profile (ranking-v1: a band of 1, so any strictly faster run is a record).
-- Walking a cohort's ranked runs by (observed_at, run digest), a run takes the record only where the holder's latency
-- is over record_band times its own. Made from scratch at every build, so the order of arrival changes nothing.
WITH improvements AS ( -- runs faster than all before: only these can be events, whatever the band
    SELECT member.profile, member.cohort_key, run_digest, latency_ns, observed_at
    FROM cohort_runs AS member
    JOIN runs USING (run_digest)
    WHERE member.ranked
    WINDOW earlier AS (
        PARTITION BY member.profile, member.cohort_key
        ORDER BY observed_at, run_digest
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
    QUALIFY latency_ns < min(latency_ns) OVER earlier OR min(latency_ns) OVER earlier IS NULL
),

latencies AS (
    SELECT profile, cohort_key, list_sort(list(latency_ns), 'DESC') AS descending
    FROM improvements
    GROUP BY profile, cohort_key
),

records AS ( -- the latencies of the events
    SELECT
        profile,
        cohort_key,
        policy_version,
        unnest(CASE
            WHEN record_band = 1 THEN descending
            ELSE list_reduce(
                list_transform(descending, lambda latency: [latency]),
                lambda kept, next: if(kept[-1] > record_band * next[1], kept || next, kept)
            )
        END) AS latency_ns
    FROM latencies
    JOIN profiles USING (profile)
)

SELECT
    profile,
    cohort_key,
    run_digest,
    lag(run_digest) OVER events AS previous_run_digest,
    latency_ns,
    lag(latency_ns) OVER events AS previous_latency_ns,
    previous_latency_ns / latency_ns AS improvement,
    observed_at AS "at",
    'new_run' AS cause,
    policy_version
FROM records
JOIN improvements USING (profile, cohort_key, latency_ns)
WINDOW events AS (PARTITION BY profile, cohort_key ORDER BY latency_ns DESC)
