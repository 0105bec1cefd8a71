"""Likelihood scorers around test models, and the plain reference: each option in a forward alone.

The reference encodes every prompt whole, by the tokenizer itself.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from models import rows as rows_module
from models.loaded import LoadedModel
from models.rows import Row
from models.scorers import settings_for
from semif_bento.decisions import Decision, JsonState, ScoreRequest
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.likelihood import wording
from semif_bento.engine.likelihood.opening import assemble_likelihood
from semif_bento.engine.likelihood.reading import find_branches
from semif_bento.engine.likelihood.scorer import TorchLikelihood
from semif_bento.engine.sources import ModelSource
from semif_bento.engine.workspace import Workspace


def assemble(
    loaded: LoadedModel, workspace: Workspace | None = None, **changes: object
) -> TorchLikelihood:
    """Build and prove a scorer around a loaded model; `changes` are fields of `Settings`."""
    settings = settings_for(loaded.dtype, **changes)
    source = ModelSource("directory", settings.model, str(settings.revision), Path())
    return assemble_likelihood(loaded.model, loaded.tokenizer, source, settings, workspace)


def request_of(rows: Sequence[Row]) -> ScoreRequest:
    """Return generated rows as a request of which every option says something."""
    request = rows_module.request_of(rows)
    decisions = tuple(
        replace(
            one,
            options=tuple(replace(o, description=o.description or "nothing") for o in one.options),
        )
        for one in request.decisions
    )
    return replace(request, decisions=decisions)


def reference(loaded: LoadedModel, state: JsonState, decision: Decision) -> list[float]:
    """Return each option's logit, by transformers' own model and nothing shared."""
    question = wording.question_text(decision)
    logits = []
    for option in decision.options:
        text = wording.option_text(option)
        likely, tokens = log_prob(loaded, wording.state_text(state) + question, text)
        prior, _ = log_prob(loaded, wording.PRIOR_TEXT + question, text)
        logits.append(wording.option_logit(likely, prior, tokens))
    return logits


@torch.inference_mode()
def log_prob(loaded: LoadedModel, context: str, text: str) -> tuple[float, int]:
    """Return log P(text | context) in nats, and the tokens of the text."""
    before = loaded.tokenizer.encode(context)
    ids = loaded.tokenizer.encode(context + text)
    assert ids[: len(before)] == before
    logits = loaded.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    log_probs = logits.float().log_softmax(-1)[len(before) - 1 : -1]
    own = ids[len(before) :]
    return math.fsum(log_probs[range(len(own)), own].tolist()), len(own)


def narrow(scorer: TorchLikelihood, request: ScoreRequest, branches: int) -> None:
    """Give a scorer just the budget with which so many of a request's longest branches fit."""
    budget = scorer._reader.budget
    encoded = scorer._encoder.encode(request)
    found = find_branches(encoded.state.questions, encoded.options)
    longest = [len(branch.ids) for branch in found[-branches:]]
    prefix = len(encoded.state.prefix_ids)
    needed = budget.cost.state_bytes(prefix) + budget.cost.group_bytes(longest, prefix)
    scorer._reader.budget = BranchBudget(budget.cost, needed, max_tokens=1)
