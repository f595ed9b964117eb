-- Standing, ranking-v1 and evidence-v1.
-- A run is eligible when it passed and has a primary latency; otherwise it keeps the codes of what is amiss.
-- Its evidence is reproducible when the source is available, all its digests resolve, the commit is known and its log
-- is kept; else it is reported, whatever anybody claims.
SELECT
    run.run_digest,
    list_sort(list_filter([
        CASE WHEN run.status != 'passed' THEN 'STATUS_' || upper(run.status) END,
        CASE WHEN run.latency_ns IS NULL THEN 'MISSING_PRIMARY_METRIC' END
    ], lambda reason: reason IS NOT NULL)) AS reasons,
    len(reasons) = 0 AS eligible,
    CASE
        WHEN
            implementation.source_available
            AND implementation.first_revision IS NOT NULL
            AND operation.operation_digest IS NOT NULL
            AND workload.workload_digest IS NOT NULL
            AND protocol.protocol_digest IS NOT NULL
            AND environment.environment_digest IS NOT NULL
            AND log.digest IS NOT NULL
            THEN 'reproducible'
        ELSE 'reported'
    END AS evidence_level
FROM parts_runs AS run
LEFT JOIN implementations AS implementation USING (implementation_digest)
LEFT JOIN operations AS operation ON run.operation_digest = operation.operation_digest
LEFT JOIN workloads AS workload ON run.workload_digest = workload.workload_digest
LEFT JOIN protocols AS protocol USING (protocol_digest)
LEFT JOIN environments AS environment USING (environment_digest)
LEFT JOIN artifacts AS log ON run.log_digest = log.digest AND log.kind = 'log'
