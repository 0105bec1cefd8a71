"""The response bodies of /classify as pydantic models: ours, and SGLang's for its clients.

Knows nothing of HTTP or of where the numbers come from.
"""

from pydantic import RootModel

from semif_bento.api.results import SharedModel
from semif_bento.api.schema import Wire


class PairResult(Wire):
    """One input's answer; numbers in the order of the labels that the response names once."""

    logits: list[float]
    probabilities: list[float]
    input_tokens: int
    tokens_sha256: str


class ClassifyTiming(Wire):
    """Where a call's time went, and what was shared; see the contract."""

    total_seconds: float
    encode_seconds: float
    prefill_seconds: float
    forward_seconds: float
    input_tokens: int
    prefix_tokens: int
    cached_tokens: int
    suffix_tokens: int
    padded_tokens: int
    groups: int


class ClassifyResponse(Wire):
    """Answer of POST /classify to pairs and ids, results in request order."""

    labels: list[str]
    results: list[PairResult]
    template: str
    template_version: str
    model: SharedModel
    readout: str
    timing: ClassifyTiming


class MetaInfo(Wire):
    """What SGLang tells of an input."""

    prompt_tokens: int


class Embedding(Wire):
    """One text's answer as SGLang gives it: three raw logits, in the order of the labels."""

    embedding: list[float]
    meta_info: MetaInfo


class Embeddings(RootModel[list[Embedding]]):
    """Answer of POST /classify to an array of texts."""


class ClassifyAnswer(RootModel[ClassifyResponse | Embedding | list[Embedding]]):
    """Answer of POST /classify: to pairs or ids, to one text, to an array of texts."""
