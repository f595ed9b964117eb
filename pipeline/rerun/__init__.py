"""Controlled reruns: what to run again (plan), the runner (torch alone), and what its results mean (verdict)."""
