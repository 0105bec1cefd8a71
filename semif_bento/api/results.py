"""The response bodies as pydantic models, their keys in the contract's order.

Knows nothing of HTTP or of where the numbers come from.
"""

from typing import Any

from pydantic import Field

from semif_bento.api.schema import Wire

WHEN_ASKED: Any = Field(default=None, exclude_if=lambda value: value is None)
"""A key that is left out, rather than null, when nobody asked for it."""


class Model(Wire):
    """What answered."""

    source: str
    revision: str
    dtype: str
    device: str
    torch_version: str
    transformers_version: str


class SharedModel(Model):
    """What answered, and how shared calls are run on it."""

    serving_config: str


class Calibrated(Wire):
    """Probabilities at the workload's temperature; the native ones stay as they are."""

    workload: str
    temperature: float
    probabilities: list[float]


class Diagnostics(Wire):
    """How sure the native answer is; see the contract. Each engine tells what it has."""

    letter_mass: float | None = WHEN_ASKED
    margin: float
    near_tie: bool
    pair_logits: list[list[float]] | None = WHEN_ASKED


class DecisionResult(Wire):
    """Answer of POST /decide."""

    id: str
    option_ids: list[str]
    probabilities: list[float]
    option_logits: list[float]
    support: float | None = WHEN_ASKED
    input_tokens: int
    forward_seconds: float
    total_seconds: float
    prompt_sha256: str
    prompt_version: str
    model: Model
    readout: str
    probability_status: str
    engine: str
    calibrated: Calibrated | None = WHEN_ASKED
    diagnostics: Diagnostics | None = WHEN_ASKED


class SharedDecisionResult(Wire):
    """One answer of POST /decide/shared."""

    id: str
    option_ids: list[str]
    probabilities: list[float]
    option_logits: list[float]
    support: float | None = WHEN_ASKED
    input_tokens: int
    prompt_sha256: str
    prompt_version: str
    model: SharedModel
    readout: str
    probability_status: str
    engine: str
    calibrated: Calibrated | None = WHEN_ASKED
    diagnostics: Diagnostics | None = WHEN_ASKED


class Timing(Wire):
    """Where a shared call's time went."""

    total_seconds: float
    encode_seconds: float
    prefix_tokens: int
    prefill_seconds: float
    replicate_seconds: float
    suffix_forward_seconds: float
    batch_size: int
    true_suffix_tokens: int
    padded_suffix_tokens: int
    branch_groups: int
    cache_hit: bool


class SharedResponse(Wire):
    """Answer of POST /decide/shared, results in request order."""

    results: list[SharedDecisionResult]
    timing: Timing


class PrefixCache(Wire):
    """The prefix cache in figures."""

    entries: int
    bytes: int
    capacity_bytes: int
    hits: int
    misses: int


class Provenance(Wire):
    """Where a fitted temperature comes from."""

    engine: str
    model_source: str
    model_revision: str
    dtype: str
    prompt_version: str
    data_sha256: str
    rows: int
    groups: int
    accuracy: float
    nll_raw: float
    nll_out_of_fold: float
    brier_raw: float
    brier_out_of_fold: float
    ece_raw: float
    ece_out_of_fold: float


class WorkloadCalibration(Wire):
    """One workload's temperature; one that was written by hand has no provenance."""

    temperature: float
    provenance: Provenance | None = WHEN_ASKED


class EngineHealth(Wire):
    """One engine of the process: what its model reads, and the tables it has."""

    prompt_version: str
    most_options: int
    workloads: list[str]
    calibration: dict[str, WorkloadCalibration]


class EngineServer(Wire):
    """A server of a remote engine: whether it is asked now, and what it was asked so far."""

    name: str
    is_ready: bool
    running: int
    calls: int
    faults: int
    ejections: int


class NliHealth(Wire):
    """The NLI engine as /health tells of it."""

    model: str
    revision: str
    dtype: str
    labels: list[str]
    template: str
    prompt_version: str
    max_pairs: int
    workloads: list[str]
    calibration: dict[str, WorkloadCalibration]


class Health(Wire):
    """Answer of GET /health; `vram_cap_gib` is 0 without a cap.

    `engine` is asked where a request names none; `model` and what belongs to it are that engine's.
    `servers` is there where a remote engine computes.
    """

    status: str
    semif_commit: str
    model: str
    vram_cap_gib: float
    max_tokens: int
    max_decisions: int
    workloads: list[str]
    calibration: dict[str, WorkloadCalibration]
    device_name: str
    allocated_gib: float
    reserved_gib: float
    linear_attention_kernels: str
    branch_attention: str
    matrix_products: str
    branch_budget_mib: float
    prefix_cache: PrefixCache
    revision: str
    dtype: str
    prompt_version: str
    version: str
    engine: str
    engines: list[str]
    by_engine: dict[str, EngineHealth]
    nli: NliHealth | None = WHEN_ASKED
    servers: list[EngineServer] | None = WHEN_ASKED
