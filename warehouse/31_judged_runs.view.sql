-- Standing, ranking-v1 and evidence-v2.
-- A run qualifies when it passed and has a primary latency, and is eligible while no suspension holds; otherwise it
-- keeps the codes of what is amiss.
-- Its evidence is replicated when controlled reruns by two verifiers (another host and another GPU) on one product
-- passed and agree: their 95 % intervals overlap or their medians lie within 10 %. It is verified when one passed. Else
-- it is reproducible when the source is available, all its digests resolve, the commit is known and its log is kept (a
-- takedown may have removed either); else it is reported, whatever anybody claims.
WITH suspended AS (
    SELECT run_digest, list(DISTINCT upper(cause)) AS causes
    FROM suspensions
    WHERE until IS NULL
    GROUP BY run_digest
),

taken_down AS (
    SELECT DISTINCT unnest(removes) AS digest
    FROM corrections
),

implementations_kept AS (
    SELECT
        implementation_digest,
        first_revision,
        source_available
        AND NOT coalesce((manifest ->> '$.spec.source.contentDigest') IN (FROM taken_down), false) AS source_kept
    FROM implementations
),

controlled AS ( -- what each passed rerun is evidence for: the run that it repeats, and itself
    SELECT
        unnest([target_run_digest, run_digest]) AS evidence_for,
        rerun.*,
        implementation_digest,
        workload_digest,
        hardware
    FROM reruns AS rerun
    JOIN parts_runs USING (run_digest)
    WHERE passed
),

replicated AS (
    SELECT DISTINCT one.evidence_for AS run_digest
    FROM controlled AS one
    JOIN controlled AS other USING (implementation_digest, workload_digest, hardware)
    WHERE
        one.host_identity != other.host_identity
        AND one.gpu_identity != other.gpu_identity
        AND (
            (one.low_ns <= other.high_ns AND other.low_ns <= one.high_ns)
            OR greatest(one.median_ns, other.median_ns) <= 1.1 * least(one.median_ns, other.median_ns)
        )
)

SELECT
    run.*,
    run.status = 'passed' AND run.latency_ns IS NOT NULL AS qualified,
    list_sort(list_concat(list_filter([
        CASE WHEN run.status != 'passed' THEN 'STATUS_' || upper(run.status) END,
        CASE WHEN run.latency_ns IS NULL THEN 'MISSING_PRIMARY_METRIC' END
    ], lambda reason: reason IS NOT NULL), causes)) AS reasons,
    len(reasons) = 0 AS eligible,
    CASE
        WHEN run.run_digest IN (SELECT run_digest FROM replicated) THEN 'replicated'
        WHEN run.run_digest IN (SELECT evidence_for FROM controlled) THEN 'verified'
        WHEN
            implementation.source_kept
            AND implementation.first_revision IS NOT NULL
            AND operation.operation_digest IS NOT NULL
            AND workload.workload_digest IS NOT NULL
            AND protocol.protocol_digest IS NOT NULL
            AND environment.environment_digest IS NOT NULL
            AND log.digest IS NOT NULL
            AND log.digest NOT IN (FROM taken_down)
            THEN 'reproducible'
        ELSE 'reported'
    END AS evidence_level
FROM observed_runs AS run
LEFT JOIN suspended USING (run_digest)
LEFT JOIN implementations_kept AS implementation USING (implementation_digest)
LEFT JOIN operations AS operation ON run.operation_digest = operation.operation_digest
LEFT JOIN workloads AS workload ON run.workload_digest = workload.workload_digest
LEFT JOIN protocols AS protocol USING (protocol_digest)
LEFT JOIN environments AS environment USING (environment_digest)
LEFT JOIN artifacts AS log ON run.log_digest = log.digest AND log.kind = 'log'
