"""OpenAI's Decisions: `/v1/decisions` as its SDK speaks it; knows nothing of torch or BentoML."""
