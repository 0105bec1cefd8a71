"""Every Prometheus metric of ours, by name; knows nothing of HTTP, and labels hold no user text.

The objects live at module level because the Prometheus client registers a name once a process.
"""

from prometheus_client import Counter, Gauge, Histogram

from semif_bento.decisions import EngineStatus, PrefixCacheStatus

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
GIB = 1 << 30

QUEUE_SECONDS = Histogram(
    "semif_queue_seconds", "Wait of a call for the one scoring slot.", buckets=SECONDS
)
SCORER_SECONDS = Histogram(
    "semif_scorer_seconds", "Time of a call in an engine.", ["engine", "mode"], buckets=SECONDS
)
INPUT_TOKENS = Counter(
    "semif_input_tokens",
    "Prompt tokens answered for, shared prefixes counted once.",
    ["engine", "mode"],
)
REQUESTS = Counter(
    "semif_requests", "Requests by route and outcome; `ok` or an error's code.", ["route", "code"]
)
PREFIX_CACHE_HITS = Counter("semif_prefix_cache_hits", "Shared calls served from the cache.")
PREFIX_CACHE_MISSES = Counter("semif_prefix_cache_misses", "Shared calls that had to prefill.")
OUT_OF_MEMORY = Counter("semif_out_of_memory", "Calls that ran out of device memory.")
ENGINE_FAULTS = Counter(
    "semif_engine_faults", "Calls that failed by a remote engine's fault, by its kind.", ["kind"]
)
ENGINE_READY = Gauge(
    "semif_engine_ready",
    "1 for a server of a remote engine that is asked, 0 for one that is out, after the last call.",
    ["server"],
    multiprocess_mode="mostrecent",
)
RESERVED_BYTES = Gauge(
    "semif_reserved_bytes",
    "Device memory held by the process after the last call.",
    multiprocess_mode="mostrecent",
)


def publish(status: EngineStatus, before: PrefixCacheStatus) -> None:
    """Publish a status; `before` is the prefix cache's as it was published last."""
    RESERVED_BYTES.set(status.reserved_gib * GIB)
    PREFIX_CACHE_HITS.inc(status.prefix_cache.hits - before.hits)
    PREFIX_CACHE_MISSES.inc(status.prefix_cache.misses - before.misses)
    for server in status.servers:
        ENGINE_READY.labels(server.name).set(server.is_ready)
