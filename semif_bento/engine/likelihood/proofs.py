"""Start-up proofs of the likelihood engine: what must hold before anything is served.

Knows nothing of HTTP or settings. A proof that fails raises StartupError with one line.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from semif_bento.caller import Caller
from semif_bento.decisions import Decision, JsonState, Option, ScoreRequest
from semif_bento.engine.layout import Stem
from semif_bento.engine.likelihood.encoded import Context, Ids
from semif_bento.engine.likelihood.encoding import LikelihoodEncoder
from semif_bento.engine.likelihood.reading import Reader
from semif_bento.engine.tolerance import allowed_distance, relative_distance
from semif_bento.errors import ScoringFailed, StartupError

_YES_NO = (Option("yes", "Yes"), Option("no", "No"), Option("no?", "No, it did not"))
_DECISIONS = (
    Decision("short", "Did the deployment succeed?", _YES_NO),
    Decision(
        "long",
        "Which of these statements about the deployment does the text establish, if any?",
        (
            Option("all", "Health checks passed in every zone before and after it."),
            Option("some", "Health checks passed in some of the zones."),
            Option("none", "Nothing is said about health checks."),
        ),
    ),
)
PROBE_STATES: tuple[JsonState, ...] = (
    "The deployment completed at 14:02 UTC. Health checks passed in all three zones.",
    {"person_said": "ok :)"},
)


def prove_likelihood(model: PreTrainedModel, reader: Reader, encoder: LikelihoodEncoder) -> None:
    """Prove that what is read behind a prefix equals the untouched model, each option alone.

    Guards, on probe rows with a state and on their priors: the hidden states of branches that share
    a question, those right behind a prefix (a lost recurrent state has faded away further on), and
    the log-probabilities of the options, for which the model's own whole head is run.

    Raises:
        StartupError: they differ by more than the dtype's tolerance (a model may do more to its
            logits than one linear layer: soft-capping, scaling), or are not finite.
    """
    for state in PROBE_STATES:
        encoded = encoder.encode(ScoreRequest(state, _DECISIONS))
        for context in (encoded.state, encoded.prior):
            _prove_states(model, reader, context, [row.distinct for row in encoded.options])
            try:
                prefix = reader.backbone.prefill(context.prefix_ids)
                read = reader.read(prefix, context.questions, encoded.options, Caller())
            except ScoringFailed as exc:
                raise StartupError(f"The warm-up decision does not score. {exc.message}") from None
            found = torch.tensor([sum(read.log_probs, ())])
            alone = [
                _log_prob(model, context.prefix_ids + question, option)
                for question, row in zip(context.questions, encoded.options, strict=True)
                for option in row.distinct
            ]
            _require(reader, "Our log-probabilities differ", found, torch.tensor([alone]))


def _prove_states(
    model: PreTrainedModel, reader: Reader, context: Context, options: Sequence[Sequence[Ids]]
) -> None:
    question, *_ = context.questions
    start = context.prefix_ids + question[:-1]
    suffixes = sorted((question[-1:] + option for option in options[0]), key=len)
    stems = [Stem(0, 1)] * len(suffixes)
    states = reader.backbone.branch_states(reader.backbone.prefill(start), suffixes, stems)
    places = [path.place(t) for path in states.paths for t in range(path.length)]
    whole = [_hidden(model, start + suffix)[len(start) :] for suffix in suffixes]
    found = states.hidden[torch.tensor(places, device=states.hidden.device)]
    _require(reader, "Cached scoring differs", found, torch.cat(whole))


def _hidden(model: PreTrainedModel, ids: Ids) -> Tensor:
    """Return the untouched model's hidden states of a whole prompt, (T, hidden)."""
    given = torch.tensor([ids], device=next(model.parameters()).device)
    return model.base_model(input_ids=given, use_cache=False).last_hidden_state[0]


def _log_prob(model: PreTrainedModel, context: Ids, option: Ids) -> float:
    """Return the untouched model's log P(option | context), in one forward of its own."""
    given = torch.tensor([context + option], device=next(model.parameters()).device)
    kept = len(option) + 1
    logits = model(input_ids=given, use_cache=False, logits_to_keep=kept).logits[0, :-1]
    log_probs = logits.float().log_softmax(-1)
    return math.fsum(log_probs[range(len(option)), list(option)].tolist())


def _require(reader: Reader, what: str, found: Tensor, expected: Tensor) -> None:
    distance = relative_distance(found, expected)
    allowed = allowed_distance(reader.backbone)
    if not distance <= allowed:  # NaN must fail too
        raise StartupError(
            f"{what} from the untouched model by {distance:.3g} (allowed: {allowed:g}); this "
            "model, device or library version cannot be served by likelihood."
        )
