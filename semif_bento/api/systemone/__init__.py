"""System One: `/v1/*` as its existing clients speak it; knows nothing of torch or BentoML."""
