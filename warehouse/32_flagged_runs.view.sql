-- Flags, flags-v1: marks of suspicion or of a peculiarity of the data, each with what it rests on. None changes a
-- status.
WITH axes AS (
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
    SELECT run_digest, any_value(conflicts.workload_uuid) AS ambiguous_uuid, max(meanings) AS meanings
    FROM conflicts
    JOIN observations USING (workload_uuid)
    JOIN parts_runs USING (run_digest, benchmark)
    GROUP BY run_digest
),

references_of AS (
    SELECT
        workload_digest,
        hardware,
        count(*) AS reference_runs,
        median(reference_latency_ms) AS median_ms
    FROM parts_runs
    WHERE reference_latency_ms > 0
    GROUP BY workload_digest, hardware
),

floors AS (
    SELECT workload_digest, hardware, model, floor_ns
    FROM floor_estimates
    WHERE model = 'headroom-v2'
),

written AS (
    SELECT implementation_digest, name AS solution, definition
    FROM implementations
),

speedups AS ( -- latencies in nanoseconds are rounded: only what is off by them is looked up as it was written
    SELECT
        *,
        reference_latency_ms / (
            CASE
                WHEN abs(speedup_factor * latency_ns / (reference_latency_ms * 1e6) - 1) > 0.005
                    THEN coalesce((manifest ->> '$.spec.sourceNative.metrics.latency_ms')::DOUBLE, latency_ns / 1e6)
                ELSE latency_ns / 1e6
            END
        ) AS expected_speedup
    FROM judged_runs
)

SELECT
    run.* EXCLUDE (expected_speedup),
    list_filter([
        {
            'flag': 'AXES_INCONSISTENT',
            'detail': nullif(concat_ws(
                '; ',
                CASE
                    WHEN pointers::DOUBLE != sequences::DOUBLE + 1
                        THEN format('len_indptr is {}, but batch_size is {}', pointers, sequences)
                END,
                CASE
                    WHEN pages::DOUBLE = 0 AND indices::DOUBLE > 0
                        THEN 'num_pages is 0, but num_kv_indices is ' || indices
                END
            ), '')
        },
        {
            'flag': 'BELOW_FLOOR',
            'detail': CASE
                WHEN latency_ns < floor_ns
                    THEN format('{:,} ns is below the floor of {:,.6g} ns ({})', latency_ns, floor_ns, model)
            END
        },
        {
            'flag': 'ERROR_LARGE',
            'detail': CASE
                WHEN max_relative_error > 1 AND max_absolute_error > 0.01
                    THEN format(
                        'relative error {:.6g} with absolute error {:.6g}', max_relative_error, max_absolute_error
                    )
            END
        },
        {
            'flag': 'ERROR_NOT_FINITE',
            'detail': CASE WHEN error_not_finite THEN 'an error bound was written as not finite' END
        },
        {
            'flag': 'LEGACY_FORMAT',
            'detail': CASE
                WHEN len(legacy_forms) > 0 THEN 'accepted legacy forms: ' || array_to_string(legacy_forms, ', ')
            END
        },
        {
            'flag': 'REFERENCE_DRIFT',
            'detail': CASE
                WHEN
                    reference_runs > 1
                    AND reference_latency_ms > 0
                    AND (reference_latency_ms > 5 * median_ms OR 5 * reference_latency_ms < median_ms)
                    THEN format(
                        'reference {:.6g} ms, median of {} runs {:.6g} ms',
                        reference_latency_ms, reference_runs, median_ms
                    )
            END
        },
        {
            'flag': 'REFERENCE_NOT_MEASURED',
            'detail': CASE
                WHEN status = 'passed' AND coalesce(reference_latency_ms, 0) = 0
                    THEN 'it passed, but no latency of its reference was measured'
            END
        },
        {
            'flag': 'SOLUTION_MISMATCH',
            'detail': CASE
                WHEN definition != benchmark
                    THEN format('{} is written for {}, measured as {}', solution, definition, benchmark)
            END
        },
        {
            'flag': 'SPEEDUP_INCONSISTENT',
            'detail': CASE
                WHEN
                    speedup_factor > 0
                    AND reference_latency_ms > 0
                    AND latency_ns > 0
                    AND abs(speedup_factor / expected_speedup - 1) > 0.01
                    THEN format(
                        'reported {:.6g}, but reference over latency is {:.6g}', speedup_factor, expected_speedup
                    )
            END
        },
        {
            'flag': 'TZ_ASSUMED',
            'detail': CASE
                WHEN timezone_assumed THEN 'its time of measurement names no zone and is read as UTC'
            END
        },
        {
            'flag': 'UUID_CONFLICT',
            'detail': CASE
                WHEN meanings > 1 THEN format('workload {} names {} different inputs', ambiguous_uuid, meanings)
            END
        }
    ], lambda mark: mark.detail IS NOT NULL) AS marks -- by name
FROM speedups AS run
LEFT JOIN axes USING (workload_digest)
LEFT JOIN ambiguous USING (run_digest)
LEFT JOIN references_of USING (workload_digest, hardware)
LEFT JOIN floors USING (workload_digest, hardware)
LEFT JOIN written USING (implementation_digest)
