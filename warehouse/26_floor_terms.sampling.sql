-- Floor of sampling from probabilities, headroom-v2.
-- Which tokens are among the largest depends on all probabilities of a row, so every input is read. No product is
-- needed.
SELECT
    workload_digest,
    input_bytes,
    output_bytes,
    NULL AS operations,
    [] AS classes,
    'every probability is read once' AS memory,
    NULL AS work,
    ['no_early_stop: no row is so uneven that its first part decides'] AS assumptions
FROM floor_facts
WHERE formula = 'sampling'
