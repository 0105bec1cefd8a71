"""The command `semif-bento`; knows nothing of HTTP handlers or tensors, it calls the rooms below."""
