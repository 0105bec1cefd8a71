"""HTTP: guard, body, schema, answers; knows nothing of torch."""
