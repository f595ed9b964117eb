-- Flags, flags-v1: those of the runs, one by one.
SELECT run_digest, unnest(flags) AS flag, unnest(flag_details) AS detail
FROM runs
