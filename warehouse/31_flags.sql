-- Flags, flags-v1: marks of suspicion or of a peculiarity of the data, each with what it rests on. None changes a
-- status.
WITH observed AS (
    SELECT
        run_digest,
        bool_and(timezone_assumed) AS timezone_assumed,
        bool_or(error_not_finite) AS error_not_finite,
        list_sort(list_distinct(flatten(list(legacy_forms)))) AS legacy_forms
    FROM observations
    GROUP BY run_digest
),

axes AS (
    SELECT
        workload_digest,
        axes ->> 'num_pages' AS pages,
        axes ->> 'num_kv_indices' AS indices,
        axes ->> 'len_indptr' AS pointers,
        axes ->> 'batch_size' AS sequences
    FROM workloads
),

conflicts AS ( -- one uuid of a definition with several axes or inputs
    SELECT benchmark, workload_uuid, count(DISTINCT (axes, inputs_sha256)) AS meanings
    FROM workload_inputs
    JOIN workloads USING (workload_digest)
    GROUP BY benchmark, workload_uuid
    HAVING meanings > 1
),

ambiguous AS (
    SELECT run_digest, any_value(conflicts.workload_uuid) AS workload_uuid, max(meanings) AS meanings
    FROM conflicts
    JOIN observations USING (workload_uuid)
    JOIN parts_runs USING (run_digest, benchmark)
    GROUP BY run_digest
),

references_of AS (
    SELECT
        workload_digest,
        hardware,
        count(*) AS runs,
        median(reference_latency_ms) AS median_ms
    FROM parts_runs
    WHERE reference_latency_ms > 0
    GROUP BY workload_digest, hardware
),

speedups AS ( -- latencies in nanoseconds are rounded: only what is off by them is looked up as it was written
    SELECT
        run_digest,
        speedup_factor,
        reference_latency_ms / (
            CASE
                WHEN abs(speedup_factor * latency_ns / (reference_latency_ms * 1e6) - 1) > 0.005
                    THEN coalesce((manifest ->> '$.spec.sourceNative.metrics.latency_ms')::DOUBLE, latency_ns / 1e6)
                ELSE latency_ns / 1e6
            END
        ) AS expected
    FROM parts_runs
    WHERE speedup_factor > 0 AND reference_latency_ms > 0 AND latency_ns > 0
),

found AS (
    SELECT run_digest, 'TZ_ASSUMED' AS flag, 'its time of measurement names no zone and is read as UTC' AS detail
    FROM observed
    WHERE timezone_assumed
    UNION ALL
    SELECT run_digest, 'ERROR_NOT_FINITE', 'an error bound was written as not finite'
    FROM observed
    WHERE error_not_finite
    UNION ALL
    SELECT run_digest, 'LEGACY_FORMAT', 'accepted legacy forms: ' || array_to_string(legacy_forms, ', ')
    FROM observed
    WHERE len(legacy_forms) > 0
    UNION ALL
    SELECT
        run_digest,
        'ERROR_LARGE',
        format('relative error {:.6g} with absolute error {:.6g}', max_relative_error, max_absolute_error)
    FROM parts_runs
    WHERE max_relative_error > 1 AND max_absolute_error > 0.01
    UNION ALL
    SELECT run_digest, 'REFERENCE_NOT_MEASURED', 'it passed, but no latency of its reference was measured'
    FROM parts_runs
    WHERE status = 'passed' AND coalesce(reference_latency_ms, 0) = 0
    UNION ALL
    SELECT
        run_digest,
        'REFERENCE_DRIFT',
        format('reference {:.6g} ms, median of {} runs {:.6g} ms', reference_latency_ms, runs, median_ms)
    FROM parts_runs
    JOIN references_of USING (workload_digest, hardware)
    WHERE runs > 1 AND reference_latency_ms > 0
        AND (reference_latency_ms > 5 * median_ms OR 5 * reference_latency_ms < median_ms)
    UNION ALL
    SELECT
        run_digest,
        'SPEEDUP_INCONSISTENT',
        format('reported {:.6g}, but reference over latency is {:.6g}', speedup_factor, expected)
    FROM speedups
    WHERE abs(speedup_factor / expected - 1) > 0.01
    UNION ALL
    SELECT run_digest, 'AXES_INCONSISTENT', 'num_pages is 0, but num_kv_indices is ' || indices
    FROM parts_runs
    JOIN axes USING (workload_digest)
    WHERE pages::DOUBLE = 0 AND indices::DOUBLE > 0
    UNION ALL
    SELECT
        run_digest,
        'AXES_INCONSISTENT',
        format('len_indptr is {}, but batch_size is {}', pointers, sequences)
    FROM parts_runs
    JOIN axes USING (workload_digest)
    WHERE pointers::DOUBLE != sequences::DOUBLE + 1
    UNION ALL
    SELECT run_digest, 'UUID_CONFLICT', format('workload {} names {} different inputs', workload_uuid, meanings)
    FROM ambiguous
    UNION ALL
    SELECT
        run_digest,
        'SOLUTION_MISMATCH',
        format('{} is written for {}, measured as {}', name, definition, benchmark)
    FROM parts_runs
    JOIN implementations USING (implementation_digest)
    WHERE definition != benchmark
    UNION ALL
    SELECT
        run_digest,
        'BELOW_FLOOR',
        format('{:,} ns is below the floor of {:,.6g} ns ({})', latency_ns, floor_ns, model)
    FROM parts_runs
    JOIN floor_estimates USING (workload_digest, hardware)
    WHERE model = 'headroom-v2' AND latency_ns < floor_ns
)

SELECT run_digest, flag, string_agg(detail, '; ' ORDER BY detail) AS detail
FROM found
GROUP BY run_digest, flag
