"""What lies in a data directory: blobs, snapshot records, Parquet parts and the DuckDB file."""
