"""The pipeline as Dagster definitions: Dagster and nothing else.

One module a concept, each thin: what is done is in the rooms below, where the command line calls it too. Nothing
outside this package imports Dagster.
"""
