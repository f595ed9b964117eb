-- Runs, observed-v1: each run with what its observations say, its present standing and its flags.
SELECT
    run.* EXCLUDE (marks),
    list_transform(marks, lambda mark: mark.flag) AS flags,
    list_transform(marks, lambda mark: mark.detail) AS flag_details
FROM flagged_runs AS run
