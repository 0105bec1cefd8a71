"""The engine that reads entailment off a classification head; knows nothing of option letters."""
