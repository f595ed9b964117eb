-- Coverage, coverage-v1: every operation on every hardware that some run names, also where nothing is measured yet.
WITH known AS (
    SELECT operation_digest, count(*) AS workloads
    FROM workloads
    GROUP BY operation_digest
),

measured AS (
    SELECT
        operation_digest,
        hardware,
        count(DISTINCT workload_digest) AS measured,
        count(DISTINCT workload_digest) FILTER (eligible) AS passing,
        max(observed_at) AS last_observed_at
    FROM runs
    GROUP BY operation_digest, hardware
)

SELECT
    operation.operation_digest,
    operation.name AS operation,
    gpu.hardware,
    coalesce(workloads, 0) AS workloads,
    coalesce(measured, 0) AS measured,
    coalesce(passing, 0) AS passing,
    last_observed_at
FROM operations AS operation
CROSS JOIN (SELECT DISTINCT hardware FROM runs) AS gpu
LEFT JOIN known USING (operation_digest)
LEFT JOIN measured USING (operation_digest, hardware)
