"""The command `semif-bento`: parse, call, print. Knows nothing of HTTP handlers or tensors."""
