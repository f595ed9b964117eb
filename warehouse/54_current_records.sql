-- Current records, history-v1: the holder is the run of the last event, which a record band may leave a little slower
-- than the fastest; a cohort whose last event leaves it without a holder has none. The floor is the profile's.
WITH holders AS (
    SELECT profile, cohort_key, run_digest, latency_ns, "at" AS held_since
    FROM record_history
    QUALIFY position = max(position) OVER (PARTITION BY profile, cohort_key)
)

SELECT
    holder.*,
    best_run_digest AS fastest_run_digest,
    best_latency_ns AS fastest_latency_ns,
    board.floor_ns,
    board.vs_floor
FROM holders AS holder
JOIN cohorts USING (profile, cohort_key)
JOIN leaderboard AS board USING (profile, cohort_key, run_digest)
