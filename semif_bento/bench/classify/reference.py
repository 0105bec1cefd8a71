"""What plain transformers says of frozen pairs: made once, kept in a file, never taken for another.

Knows nothing of how our engine runs or of what is compared.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from semif_bento.bench.classify.inputs import FrozenInputs
from semif_bento.bench.classify.target import Target
from semif_bento.entailment import template_version
from semif_bento.errors import StartupError

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """One pair's logits, float32 as the head gave them."""

    id: str
    tokens_sha256: str
    logits: Triple


@dataclass(frozen=True, slots=True)
class Origin:
    """What a reference was made of; all of it must be the same where it is used.

    `made_on` tells device and versions, which may differ.
    """

    model: str
    revision: str
    dtype: str
    template_version: str
    pairs: int
    texts_sha256: str
    tokens_sha256: str

    @classmethod
    def of(cls, target: Target, inputs: FrozenInputs) -> "Origin":
        """Return what a reference for these would be made of."""
        identity = target.identity
        return cls(
            model=identity.source,
            revision=identity.revision,
            dtype=identity.dtype,
            template_version=template_version(target.checkpoint.template),
            pairs=len(inputs.rows),
            texts_sha256=inputs.texts_sha256,
            tokens_sha256=inputs.tokens_sha256,
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """The logits of every pair in order, what they were made of, and on what."""

    origin: Origin
    made_on: str
    rows: tuple[ReferenceRow, ...]

    def logits(self) -> list[Triple]:
        """Return the logits in order."""
        return [row.logits for row in self.rows]


@torch.inference_mode()
def make_reference(
    target: Target, inputs: FrozenInputs, on_row: Callable[[int], object] = lambda done: None
) -> Reference:
    """Run every pair by itself through the untouched model; `on_row` hears how many are done."""
    model = target.checkpoint.model
    device = next(model.parameters()).device
    rows: list[ReferenceRow] = []
    for row in inputs.rows:
        ids = torch.tensor([row.ids], device=device)  # (1, S): no padding anywhere
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
        c, e, n = logits[0].float().tolist()
        rows.append(ReferenceRow(row.pair.id, row.tokens_sha256, (c, e, n)))
        on_row(len(rows))
    identity = target.identity
    made_on = (
        f"{identity.device}, torch {identity.torch_version}, "
        f"transformers {identity.transformers_version}"
    )
    return Reference(Origin.of(target, inputs), made_on, tuple(rows))


@torch.inference_mode()
def run_padded(target: Target, inputs: FrozenInputs, batch: int) -> list[Triple]:
    """Run the untouched model on padded batches: how far it is from itself, run otherwise."""
    model = target.checkpoint.model
    device, pad = next(model.parameters()).device, model.config.get_text_config().pad_token_id
    found: list[Triple] = []
    for first in range(0, len(inputs.rows), batch):
        rows = [torch.tensor(row.ids) for row in inputs.rows[first : first + batch]]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        ones = [torch.ones_like(row) for row in rows]
        mask = torch.nn.utils.rnn.pad_sequence(ones, batch_first=True)
        given = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
        logits = model(**given, use_cache=False).logits
        found.extend((c, e, n) for c, e, n in logits.float().tolist())
    return found


def write_reference(path: Path, reference: Reference) -> None:
    """Write a reference as one JSON object.

    Raises:
        StartupError: the file cannot be written.
    """
    try:
        path.write_text(json.dumps(asdict(reference), indent=1) + "\n", encoding="utf-8")
    except OSError as exc:
        raise StartupError(f"{path} cannot be written: {type(exc).__name__}.") from exc


def read_reference(path: Path, target: Target, inputs: FrozenInputs) -> Reference:
    """Read a reference and make sure that it is one for this model and these pairs.

    Raises:
        StartupError: it cannot be read, or was made of another model, revision, dtype, template,
            tokenizer or set of pairs; the message says which.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        origin = Origin(**found["origin"])
        rows = tuple(
            ReferenceRow(str(row["id"]), str(row["tokens_sha256"]), _triple(row["logits"]))
            for row in found["rows"]
        )
        reference = Reference(origin, str(found["made_on"]), rows)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise StartupError(f"{path} is no reference: {type(exc).__name__}.") from exc
    _refuse_other(reference.origin, Origin.of(target, inputs))
    expected = [(row.pair.id, row.tokens_sha256) for row in inputs.rows]
    if [(row.id, row.tokens_sha256) for row in rows] != expected:
        raise StartupError("The reference's rows are not those that its own hash tells of.")
    return reference


def _refuse_other(theirs: Origin, ours: Origin) -> None:
    for name in ("model", "revision", "dtype", "template_version"):
        if getattr(theirs, name) != getattr(ours, name):
            raise StartupError(
                f"The reference was made with another {name.replace('_', ' ')}: "
                f"{getattr(theirs, name)!r}, not {getattr(ours, name)!r}."
            )
    if theirs.texts_sha256 != ours.texts_sha256:
        raise StartupError("The reference was made of other pairs: their texts differ.")
    if theirs.tokens_sha256 != ours.tokens_sha256:
        raise StartupError("The reference was made with another tokenizer: token ids differ.")


def _triple(logits: list[float]) -> Triple:
    c, e, n = (float(logit) for logit in logits)
    return c, e, n
