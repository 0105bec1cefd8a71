"""The NLI engine against plain transformers, frozen pair by frozen pair; prints nothing itself."""
