-- Floor of root mean square normalization, headroom-v2.
-- Every element enters the sum of squares of its row and is scaled, so all inputs are read. An element costs a square,
-- a sum, and the products with the row's factor and with its weight: 4 operations; a fused residual adds one.
WITH arguments AS (
    SELECT
        workload_digest,
        max(elements) AS elements,
        bool_or(name = 'residual') AS residual,
        list(class) AS classes
    FROM floor_tensors
    WHERE role = 'input'
    GROUP BY workload_digest
)

SELECT
    workload_digest,
    input_bytes,
    output_bytes,
    if(residual, 5, 4) * elements AS operations,
    classes,
    'every input is read once' AS memory,
    format('{} operations on each of {:.15g} elements', if(residual, 5, 4), elements) AS work,
    [] AS assumptions
FROM floor_facts
JOIN arguments USING (workload_digest)
WHERE formula = 'rmsnorm'
