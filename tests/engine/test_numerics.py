"""How far each way to compute in bfloat16 lies from the same weights computed in float32.

`pytest -m platform -s tests/engine/test_numerics.py` prints the figures.
"""

from collections.abc import Callable

import pytest
import torch
from models.loaded import LoadedModel
from models.rows import Row, request_of
from torch import Tensor

from semif_bento.bench.workload import as_rows, make_request
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.letters.encoding import Encoder

STATE_TOKENS, DECISIONS = 100, 4
NO_WORSE_THAN = 2.0
"""Largest ratio of mean errors, ours over the model's own: both round once a product."""


@pytest.mark.platform
@torch.inference_mode()
def test_our_bfloat16_is_as_near_to_float32_as_the_models_own(
    smollm2: Callable[[str], LoadedModel],
) -> None:
    """Direct and shared scoring err from exact computing as the untouched model does."""
    rounded, exact = smollm2("bfloat16"), smollm2("float32")
    encoder = Encoder(rounded.tokenizer, 2048)
    encoded = encoder.encode(request_of(_rows(rounded)))
    order = sorted(range(DECISIONS), key=lambda i: len(encoded.decisions[i].suffix_ids))
    backbone = Backbone(rounded.model, "cascade")
    prefix = backbone.prefill(encoded.prefix_ids)
    suffixes = [encoded.decisions[index].suffix_ids for index in order]
    shared = backbone.branches(prefix, suffixes)

    errors: dict[str, list[float]] = {"the model's own": [], "direct": [], "shared": []}
    for place, index in enumerate(order):
        ids = encoded.whole(index)
        truth = _logits(exact, _last_hidden(exact, ids), encoder)
        found = {
            "the model's own": _last_hidden(rounded, ids),
            "direct": backbone.whole(ids),
            "shared": shared[place : place + 1],
        }
        for name, hidden in found.items():
            errors[name].append(float((_logits(rounded, hidden, encoder) - truth).abs().max()))
    means = {name: sum(found) / len(found) for name, found in errors.items()}

    print("\nlargest logit error of a row, mean:", {n: round(m, 3) for n, m in means.items()})  # noqa: T201
    assert means["direct"] <= NO_WORSE_THAN * means["the model's own"]
    assert means["shared"] <= NO_WORSE_THAN * means["the model's own"]


def _rows(loaded: LoadedModel) -> list[Row]:
    def count(text: str) -> int:
        return len(loaded.tokenizer.encode(text, add_special_tokens=False))

    return as_rows(make_request(STATE_TOKENS, DECISIONS, count))


def _last_hidden(loaded: LoadedModel, ids: tuple[int, ...]) -> Tensor:
    whole = loaded.model.base_model(input_ids=torch.tensor([ids]), use_cache=False)
    return whole.last_hidden_state[:, -1]


def _logits(loaded: LoadedModel, hidden: Tensor, encoder: Encoder) -> Tensor:
    return (hidden @ loaded.model.lm_head.weight[list(encoder.slot_ids)].T).float()
