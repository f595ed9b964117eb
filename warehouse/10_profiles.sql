-- Profiles: how runs are grouped, how wide a tie is, what a record needs, which floor is shown.
-- source_native: ranking-v1, as the source publishes it. Only equal latencies tie; any faster run is a record.
-- strict_exact: ranking-v2. Cohorts also separate inputs and the way of timing; a reported single value carries no
-- uncertainty, so latencies within 2 % tie (the median spread of 244 repeated public measurements is 1.8 %), and a
-- record falls only to a run that is faster by more.
SELECT *
FROM (
    VALUES
        ('source_native', 'ranking-v1', 1.0, 1.0, 'headroom-v1', 'Runs of one comparison key, as published'),
        ('strict_exact', 'ranking-v2', 1.02, 1.02, 'headroom-v2', 'Also the same inputs and timing; near ties tie')
) AS profile (profile, policy_version, tie_band, record_band, floor_model, comment)
