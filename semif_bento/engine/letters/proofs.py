"""Start-up proofs: what must hold on the loaded model before anything is served.

Knows nothing of HTTP or settings. A proof that fails raises StartupError with one line.
"""

import logging
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.letters.encoding import Encoder
from semif_bento.engine.letters.head import SlotHead
from semif_bento.engine.tolerance import allowed_distance, relative_distance
from semif_bento.errors import ScoringFailed, StartupError

logger = logging.getLogger(__name__)

_YES_NO = (Option("yes", "The deployment succeeded."), Option("no", "It did not succeed."))
_SHORT = Decision("warm-up", "Is there evidence that the deployment succeeded?", _YES_NO)
_LONG = Decision(
    "warm-up-long",
    "Which of these statements about the deployment does the evidence establish, if any?",
    (
        Option("all", "Health checks passed in every zone before and after the deployment."),
        Option("some", "Health checks passed in some of the zones."),
        Option("none", "Nothing is said about health checks."),
    ),
)
PROBE_STATES: tuple[JsonState, ...] = (
    "The deployment completed at 14:02 UTC. Health checks passed in all three zones.",
    {"person_said": "ok :)"},
)


def prove_backbone(backbone: Backbone, encoder: Encoder) -> None:
    """Prove that cached scoring equals fresh scoring on probe rows.

    Branches of one prefill must end in the hidden states that whole prompts end in, for states
    that are plain and states whose end re-tokenises, alone and beside longer branches, and so must
    a prompt's last token alone: behind a long suffix, a lost recurrent state has faded away.

    Raises:
        StartupError: they differ by more than the dtype's tolerance, or are not finite.
    """
    for number, state in enumerate(PROBE_STATES, 1):
        logger.info("proving shared states, %d of %d", number, len(PROBE_STATES))
        encoded = encoder.encode(ScoreRequest(state, (_SHORT, _LONG)))
        suffixes = [decision.suffix_ids for decision in encoded.decisions]
        fresh = torch.cat([backbone.whole(encoded.whole(i)) for i in range(len(suffixes))])
        _prove_equal(backbone, encoded.prefix_ids, suffixes, fresh)  # (2, hidden)
        *start, last = encoded.whole(0)
        _prove_equal(backbone, start, [(last,)], fresh[:1])


def _prove_equal(
    backbone: Backbone, prefix: Sequence[int], suffixes: Sequence[Sequence[int]], fresh: Tensor
) -> None:
    distance = relative_distance(backbone.branches(backbone.prefill(prefix), suffixes), fresh)
    tolerance = allowed_distance(backbone)
    if not distance <= tolerance:  # NaN must fail too
        raise StartupError(
            f"Cached scoring differs from fresh scoring by {distance:.3g} (allowed: "
            f"{tolerance:g}); this model, device or library version cannot share a state."
        )


def prove_model(
    model: PreTrainedModel, backbone: Backbone, head: SlotHead, encoder: Encoder
) -> None:
    """Score a warm-up decision, and prove that it equals what the untouched model computes.

    Guards our layers and the slots read alone in one go: the model's own forward and whole head
    must give the same logits at the slots.

    Raises:
        StartupError: a logit is not finite, or they differ by more than the dtype's tolerance (a
            model may do more to its logits than one linear layer: soft-capping, scaling).
    """
    logger.info("proving the answer slots against the model")
    encoded = encoder.encode(ScoreRequest(PROBE_STATES[0], (_SHORT,)))
    hidden = backbone.whole(encoded.whole(0))
    try:
        ours = {head.slot_ids: head.logits(hidden)}  # (1, 16)
        if head.wide_ids:
            ours[head.wide_ids] = head.wide_logits(hidden)  # (1, N)
    except ScoringFailed as exc:
        raise StartupError(f"The warm-up decision does not score. {exc.message}") from None
    ids = torch.tensor([encoded.whole(0)], device=backbone.device)
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[:, -1]
    tolerance = allowed_distance(backbone)
    for slot_ids, found in ours.items():
        distance = relative_distance(found, logits[:, list(slot_ids)].float().cpu())
        if not distance <= tolerance:
            raise StartupError(
                f"Our scores differ from the model's own by {distance:.3g} (allowed: "
                f"{tolerance:g})."
            )
