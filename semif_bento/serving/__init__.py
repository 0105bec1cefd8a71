"""One slot before the scorer: queue, deadline, metrics; knows nothing of HTTP or torch."""
