-- Profiles: how runs are grouped, how wide a tie is, what a record needs, which floor is shown.
-- source_native: ranking-v1, as the source publishes it. Only equal latencies tie; any faster run is a record.
SELECT *
FROM (
    VALUES
        ('source_native', 'ranking-v1', 1.0, 1.0, 'headroom-v1', 'Runs of one comparison key, as the source publishes')
) AS profile (profile, policy_version, tie_band, record_band, floor_model, comment)
