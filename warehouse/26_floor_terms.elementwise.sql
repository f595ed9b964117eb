-- Floor of an elementwise operation, headroom-v2.
-- Every input element enters the result, so all inputs are read; an element of the result costs one operation.
WITH arguments AS (
    SELECT
        workload_digest,
        max(elements) FILTER (role = 'output') AS elements,
        list(class) FILTER (role = 'input') AS classes
    FROM floor_tensors
    GROUP BY workload_digest
)

SELECT
    workload_digest,
    input_bytes,
    output_bytes,
    elements AS operations,
    classes,
    'every input is read once' AS memory,
    format('an operation on each of {:.15g} elements', elements) AS work,
    [] AS assumptions
FROM floor_facts
JOIN arguments USING (workload_digest)
WHERE formula = 'elementwise'
