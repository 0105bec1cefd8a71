"""`/classify`, and decisions by entailment; knows nothing of torch or of option letters."""
