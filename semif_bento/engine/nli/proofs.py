"""Start-up proofs of an NLI model: what must hold before it is served.

Knows nothing of HTTP or settings. A proof that fails raises StartupError with one line.
"""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from semif_bento.engine.backbone import Backbone
from semif_bento.engine.nli.checkpoint import NliCheckpoint
from semif_bento.engine.nli.encoding import PairEncoder
from semif_bento.engine.tolerance import allowed_distance, relative_distance
from semif_bento.entailment import Pair
from semif_bento.errors import StartupError

logger = logging.getLogger(__name__)

_PREMISE = "The deployment completed at 14:02 UTC. Health checks passed in all three zones."
_CLAIM = 'The answer to "Did the deployment succeed, in every zone and at once?" is '
PROBES = (
    Pair(_PREMISE, f"{_CLAIM}yes: Every zone passed."),
    Pair(_PREMISE, f"{_CLAIM}no: Some zone failed, and what happened there is told at length."),
    Pair(_PREMISE, "It rained."),
)


def prove_classifier(checkpoint: NliCheckpoint, backbone: Backbone, encoder: PairEncoder) -> None:
    """Prove that every way to run an input ends in what the untouched model computes.

    Guards, on pairs of different length: the last token as the place of pooling, padding that
    changes nothing, whole inputs run together, branches of one premise, and branches of a premise
    that was extended by what they share beyond it.

    Raises:
        StartupError: they differ by more than the dtype's tolerance, or are not finite.
    """
    logger.info("proving %d pairs against the NLI model", len(PROBES))
    encoded = sorted(encoder.encode(PROBES), key=lambda given: given.length)
    wholes = [given.prefix_ids + given.suffix_ids for given in encoded]
    untouched = torch.cat([_logits(checkpoint, [ids]) for ids in wholes])  # (3, 3)
    _require(backbone, "A padded batch", _logits(checkpoint, wholes), untouched)
    _require(backbone, "Our forward", _read(checkpoint, backbone.wholes(wholes)), untouched)
    (prefix,) = {given.prefix_ids for given in encoded}
    state = backbone.prefill(prefix)
    shared = backbone.branches(state, [given.suffix_ids for given in encoded])
    _require(backbone, "Sharing a premise", _read(checkpoint, shared), untouched)
    alike = encoded[1:]  # the two long ones, which begin alike behind the premise
    common = 0
    while alike[0].suffix_ids[common] == alike[1].suffix_ids[common]:
        common += 1
    longer = backbone.extend(state, alike[0].suffix_ids[:common])
    further = backbone.branches(longer, [given.suffix_ids[common:] for given in alike])
    _require(backbone, "Sharing an instruction", _read(checkpoint, further), untouched[1:])


def _logits(checkpoint: NliCheckpoint, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return the untouched model's logits of right-padded rows, (B, 3)."""
    model = checkpoint.model
    width = max(map(len, rows))
    pad = model.config.get_text_config().pad_token_id
    ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    device = next(model.parameters()).device
    return model(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).logits


def _read(checkpoint: NliCheckpoint, hidden: Tensor) -> Tensor:
    return nn.functional.linear(hidden, checkpoint.head.weight, checkpoint.head.bias)


def _require(backbone: Backbone, what: str, found: Tensor, expected: Tensor) -> None:
    distance, allowed = relative_distance(found, expected), allowed_distance(backbone)
    if not distance <= allowed:  # NaN must fail too
        raise StartupError(
            f"{what} differs from the untouched NLI model by {distance:.3g} (allowed: "
            f"{allowed:g}); this model, device or library version cannot be served."
        )
