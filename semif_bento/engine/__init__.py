"""The model side: from request to logits; knows nothing of HTTP, BentoML or calibration."""
