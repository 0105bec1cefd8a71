"""Our scores are those of SemIf's reference scorers, on the same model objects in one process.

The token ids are compared one by one in test_encoding.py.
"""

from dataclasses import dataclass

import pytest
import torch
from fastjev._runtime.direct import score
from fastjev._runtime.shared import score_shared
from models.loaded import LoadedModel, build_tiny_qwen, load_smollm2
from models.rows import Row, generate, request_of, row_about
from models.scorers import assemble

from semif_bento.protocol import NEAR_TIE_LOGITS

# The reference still uses the old name of `cache`.
pytestmark = pytest.mark.filterwarnings("ignore:`past_key_values` is deprecated:FutureWarning")

LIMIT = 2048
LOGIT_TOLERANCE = {"float32": 1e-4, "bfloat16": 0.5}
"""Nats. A bfloat16 logit over 32 has steps of 0.25, and SmolLM2's are that large: the reference
itself moves by one when it scores a row from its own cache."""

BOTH = ("cascade", "views")
# Model, dtype, states, decisions about each, branch attentions: many rows where they are quick.
# Bfloat16 is as the platform computes it; the reference multiplies natively, slowly on some CPUs.
TARGETS = {
    "tiny-qwen-float32": ("tiny-qwen", "float32", 62, 5, BOTH),
    "tiny-qwen-bfloat16": ("tiny-qwen", "bfloat16", 8, 5, BOTH),
    "smollm2-float32": ("smollm2", "float32", 2, 3, ("cascade",)),
    "smollm2-bfloat16": ("smollm2", "bfloat16", 1, 3, ("views",)),
}
REFUSED_UPSTREAM = [
    *({"messages": [{"role": "user", "content": f"it arrived broken{end}"}]} for end in ".!?:,"),
    *({"person_said": f"ok :{end}"} for end in ")};>/"),
]


@dataclass(frozen=True)
class Target:
    """A model, rows in groups of one state, what the reference says of them, and our scorers."""

    loaded: LoadedModel
    groups: list[list[Row]]
    direct: list[list[Row]]
    shared: list[list[Row] | None]
    scorers: dict[str, object]


def tell(line: str) -> None:
    """Show a figure to who runs pytest with -rP."""
    print(line)  # noqa: T201


def reference_direct(loaded: LoadedModel, row: Row) -> Row:
    return score(loaded.model, loaded.tokenizer, row, {}, LIMIT)


def reference_shared(loaded: LoadedModel, rows: list[Row]) -> list[Row] | None:
    """The reference's shared answers, or None for a state whose end it refuses."""
    try:
        return score_shared(loaded.model, loaded.tokenizer, rows, {}, LIMIT)[0]
    except ValueError as refused:
        if str(refused) != "The fixed state prefix does not match every full prompt":
            raise
        return None


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            target, id=name, marks=[pytest.mark.platform] if target[1] == "bfloat16" else []
        )
        for name, target in TARGETS.items()
    ],
)
def target(request, qwen_tokenizer):
    """The reference runs first, on a model that no scorer has seen."""
    name, dtype, states, decisions_each, attentions = request.param
    if name == "smollm2":
        loaded = load_smollm2.__wrapped__(dtype)
    else:
        model = build_tiny_qwen().to(getattr(torch, dtype))
        loaded = LoadedModel(model, qwen_tokenizer, dtype)
    groups = generate(states, decisions_each, seed=2)
    direct = [[reference_direct(loaded, row) for row in rows] for rows in groups]
    shared = [reference_shared(loaded, rows) for rows in groups]
    scorers = {
        attention: assemble(loaded, branch_attention=attention, max_tokens=LIMIT)
        for attention in attentions
    }
    return Target(loaded, groups, direct, shared, scorers)


def compare(ours, reference: Row, dtype: str) -> float:
    """Compare one answer with the reference's; return the largest gap of their logits."""
    assert ours.decision_id == reference["id"]
    assert list(ours.option_ids) == reference["option_ids"]
    assert ours.prompt_sha256 == reference["prompt_sha256"]
    assert ours.input_tokens == reference["input_tokens"]
    logits = reference["option_logits"]
    gap = max(abs(a - b) for a, b in zip(ours.option_logits, logits, strict=True))
    assert gap <= LOGIT_TOLERANCE[dtype]
    pairs = zip(ours.probabilities, reference["probabilities"], strict=True)
    assert max(abs(a - b) for a, b in pairs) <= gap + 1e-12
    first, second = sorted(logits, reverse=True)[:2]
    if first - second > NEAR_TIE_LOGITS[dtype]:
        assert logits.index(first) == ours.option_logits.index(max(ours.option_logits))
    return gap


def test_direct_scores_are_the_reference_s(target):
    scorer, *_ = target.scorers.values()
    gaps = [
        compare(scorer.direct(request_of([row])).scores, expected, target.loaded.dtype)
        for rows, answers in zip(target.groups, target.direct, strict=True)
        for row, expected in zip(rows, answers, strict=True)
    ]
    tell(f"{len(gaps)} direct rows, {target.loaded.dtype}: largest gap {max(gaps):.2g} logits")


def test_shared_scores_are_the_reference_s(target):
    dtype = target.loaded.dtype
    for attention, scorer in target.scorers.items():
        gaps = []
        for rows, *known in zip(target.groups, target.direct, target.shared, strict=True):
            found = scorer.shared(request_of(rows)).scores
            for reference in filter(None, known):
                pairs = zip(found, reference, strict=True)
                gaps += [compare(ours, expected, dtype) for ours, expected in pairs]
        tell(f"{len(gaps)} {attention} answers, {dtype}: largest gap {max(gaps):.2g} logits")


def test_the_reference_gives_the_same_bits_after_our_scorers_were_built_and_used(target):
    again = reference_direct(target.loaded, target.groups[0][0])
    assert again["option_logits"] == target.direct[0][0]["option_logits"]


@pytest.mark.parametrize("target", [TARGETS["tiny-qwen-float32"]], indirect=True, ids=["tiny"])
def test_states_that_the_reference_refuses_to_share_equal_direct_scoring_here(target):
    for state in REFUSED_UPSTREAM:
        rows = [row_about(state), {**row_about(state, question="Is it over?"), "id": "second"}]
        assert reference_shared(target.loaded, rows) is None
        direct = [reference_direct(target.loaded, row) for row in rows]
        for scorer in target.scorers.values():
            found = scorer.shared(request_of(rows)).scores
            for ours, expected in zip(found, direct, strict=True):
                compare(ours, expected, "float32")
