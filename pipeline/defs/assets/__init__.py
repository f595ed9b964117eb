"""Assets: what the pipeline leaves behind, one module a step that writes.

An asset calls the same function as the command line and says what came of it. Not here: what must hold of an asset
(``checks``), when it is made (``jobs``, ``schedules``), and anything about data that is not about Dagster.
"""
