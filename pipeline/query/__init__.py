"""Questions to a published warehouse, and their answers as plain data.

Each module takes a read-only DuckDB connection and returns dataclasses; :mod:`pipeline.query.plain` turns
them into JSON. Nothing here writes, prints or knows a terminal.
"""
