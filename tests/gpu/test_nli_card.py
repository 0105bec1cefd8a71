"""The NLI engine on a CUDA card: eight layers in the 4B's shape, random weights, a 12 GiB cap.

Run with `make gpu-check`; without a card it fails. Figures are printed; timings are never asserted.
"""

import statistics
import time

import pytest
import torch
from models.qwen_vocabulary import load_qwen_tokenizer
from transformers import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5TextForSequenceClassification

from semif_bento.engine.device import check_device
from semif_bento.engine.memory import BURST_SLACK_BYTES, GIB, cap_process
from semif_bento.engine.nli.checkpoint import NliCheckpoint
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.engine.nli.opening import assemble_classifier
from semif_bento.engine.sources import ModelSource
from semif_bento.entailment import LABELS, PAIR_TEMPLATE, Pair
from semif_bento.settings import Settings

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
CAP_GIB = 12.0
SENTENCE = "The shop opens at nine and closes at six; parcel {n} was handed over at noon. "
LAYERS = 8
LARGEST_GAP = 0.25
"""Of a logit, in bfloat16: what two right ways to compute one may differ by."""


@pytest.fixture(scope="module")
def classifier() -> TorchClassifier:
    """A classifier with every start-up proof passed."""
    settings = Settings(device=DEVICE, nli_dtype="bfloat16", vram_cap_gib=CAP_GIB)
    check_device(settings)
    cap_process(CAP_GIB)
    tokenizer = load_qwen_tokenizer()
    checkpoint = NliCheckpoint(_random_model(tokenizer.pad_token_id), tokenizer, PAIR_TEMPLATE)
    source = ModelSource("directory", "random-nli", "seed 0", tokenizer.name_or_path)
    return assemble_classifier(checkpoint, source, settings)


def _random_model(pad_token_id: int) -> Qwen3_5TextForSequenceClassification:
    config = Qwen3_5TextConfig(
        vocab_size=248320,
        hidden_size=2560,
        intermediate_size=9216,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=256,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        pad_token_id=pad_token_id,
        id2label=dict(enumerate(LABELS)),
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(DEVICE):
            return Qwen3_5TextForSequenceClassification(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def _pairs(premises: int, hypotheses: int, sentences: int) -> list[Pair]:
    return [
        Pair(
            f"{place}. " + "".join(SENTENCE.format(n=n) for n in range(sentences)),
            f'The answer to "Was it handed over in time?" is level {level}: {level} of ten.',
        )
        for place in range(premises)
        for level in range(hypotheses)
    ]


def test_shared_equals_whole_within_the_noise(classifier: TorchClassifier) -> None:
    pairs = _pairs(4, 8, 30)
    shared = classifier.classify(pairs)
    classifier.shares = False
    whole = classifier.classify(pairs)
    classifier.shares = True
    gap = max(
        abs(a - b)
        for one, other in zip(shared.rows, whole.rows, strict=True)
        for a, b in zip(one.logits, other.logits, strict=True)
    )
    print(f"\nshared against whole: largest logit gap {gap:.4f}")
    assert gap <= LARGEST_GAP


def test_the_same_bits_cold_warm_and_reordered(classifier: TorchClassifier) -> None:
    pairs = _pairs(3, 5, 30)
    classifier.forget_prefixes()
    cold = classifier.classify(pairs).rows
    assert classifier.classify(pairs).rows == cold
    assert classifier.classify(pairs[::-1]).rows == cold[::-1]


def test_a_call_of_a_thousand_pairs_stays_under_the_cap(classifier: TorchClassifier) -> None:
    resting = torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    outcome = classifier.classify(_pairs(16, 64, 150))
    peak = torch.cuda.max_memory_reserved() / GIB
    held = torch.cuda.memory_reserved() - resting - classifier.status().prefix_cache.bytes
    print(f"\n1,024 pairs: {outcome.timing}, {peak:.2f} GiB reserved at most")
    assert peak <= CAP_GIB
    assert held <= BURST_SLACK_BYTES


def test_speed_is_printed(classifier: TorchClassifier) -> None:
    pairs = _pairs(11, 3, 30)
    seconds: dict[str, list[float]] = {"disabled": [], "cold": [], "warm": []}
    for _ in range(4):
        for state, found in seconds.items():
            classifier.shares = state != "disabled"
            if state != "warm":
                classifier.forget_prefixes()
            torch.cuda.synchronize()
            started = time.perf_counter()
            classifier.classify(pairs)
            found.append(time.perf_counter() - started)
    p50 = {state: statistics.median(found[1:]) for state, found in seconds.items()}
    print(
        f"\n{torch.cuda.get_device_name(0)}: 33 pairs over 11 premises, disabled "
        f"{p50['disabled'] * 1e3:.0f} ms, cold {p50['cold'] * 1e3:.0f} ms "
        f"({p50['disabled'] / p50['cold']:.2f}×), warm {p50['warm'] * 1e3:.0f} ms "
        f"({p50['disabled'] / p50['warm']:.2f}×)"
    )
