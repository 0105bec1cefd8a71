"""Scoring by servers of another engine: the same contract over vLLM or SGLang."""
