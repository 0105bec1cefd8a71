"""The engine that reads option letters off the head; knows nothing of other engines."""
