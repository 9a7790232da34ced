"""Time and memory: ``python -m validation.benchmarks``."""
