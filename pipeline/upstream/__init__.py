"""The shape of FlashInfer-Bench documents: records in files, JSON as upstream writes it, lax models."""
