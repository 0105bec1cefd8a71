"""Timings against SemIf's reference scorers in one process; knows nothing of HTTP or printing."""
