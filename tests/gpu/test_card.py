"""What only a CUDA card can show, in the real 4B shape with random weights under a 12 GiB cap.

Run it with `make gpu-check`. Asked for without a card, it fails: a check that silently skips is
none. Figures are printed; timings are never asserted.
"""

import statistics
import time

import pytest
import torch
from models.qwen_vocabulary import load_qwen_tokenizer
from transformers import PreTrainedModel, Qwen3_5ForCausalLM, Qwen3_5TextConfig

from semif_bento.bench.workload import make_request
from semif_bento.decisions import ScoreRequest, SharedOutcome
from semif_bento.engine.device import check_device
from semif_bento.engine.letters.opening import assemble_scorer
from semif_bento.engine.letters.scorer import TorchScorer
from semif_bento.engine.memory import BURST_SLACK_BYTES, GIB, cap_process
from semif_bento.engine.sources import ModelSource
from semif_bento.errors import OutOfMemory
from semif_bento.protocol import NEAR_TIE_LOGITS
from semif_bento.settings import Settings

pytestmark = pytest.mark.gpu

CAP_GIB = 12.0
SETTINGS = Settings(device="cuda", dtype="bfloat16", vram_cap_gib=CAP_GIB, max_tokens=4608)


@pytest.fixture(scope="module")
def scorer() -> TorchScorer:
    """A scorer around random weights in the shape of Qwen3.5-4B, every start-up proof passed."""
    check_device(SETTINGS)
    cap_process(CAP_GIB)
    tokenizer = load_qwen_tokenizer()
    source = ModelSource("directory", "random-4b", "seed 0", tokenizer.name_or_path)
    return assemble_scorer(_random_4b(), tokenizer, source, SETTINGS)


def _random_4b() -> PreTrainedModel:
    config = Qwen3_5TextConfig(
        vocab_size=248320,
        hidden_size=2560,
        intermediate_size=9216,
        num_hidden_layers=32,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=256,
        linear_num_key_heads=16,
        linear_num_value_heads=32,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cuda"):
            return Qwen3_5ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(torch.float32)


def _request(state_tokens: int, decisions: int, seed: int = 0) -> ScoreRequest:
    tokenizer = load_qwen_tokenizer()
    return make_request(
        state_tokens,
        decisions,
        lambda text: len(tokenizer.encode(text, add_special_tokens=False)),
        seed,
    )


def _logits(outcome: SharedOutcome) -> list[tuple[float, ...]]:
    return [scores.option_logits for scores in outcome.scores]


def test_largest_legal_request_succeeds_under_the_cap(scorer: TorchScorer) -> None:
    torch.cuda.reset_peak_memory_stats()

    outcome = scorer.shared(_request(4096, 64))

    peak = torch.cuda.max_memory_reserved() / GIB
    print(f"\n64 decisions × 4,096 tokens: {outcome.timing}, {peak:.2f} GiB reserved at most")
    assert peak <= CAP_GIB
    assert len(outcome.scores) == 64


def test_shared_equals_direct_within_the_noise(scorer: TorchScorer) -> None:
    request = _request(1000, 21)
    shared = scorer.shared(request)
    gaps = []
    for decision, scores in zip(request.decisions, shared.scores, strict=True):
        direct = scorer.direct(ScoreRequest(request.state, (decision,))).scores
        gaps.append(
            max(abs(a - b) for a, b in zip(direct.option_logits, scores.option_logits, strict=True))
        )

    print(f"\nshared against direct: largest logit gap {max(gaps):.4f}")
    assert max(gaps) <= 2 * NEAR_TIE_LOGITS["bfloat16"]


def test_same_request_gives_the_same_bits_whatever_ran_between(scorer: TorchScorer) -> None:
    request = _request(800, 8)
    scorer.forget_prefixes()
    cold = scorer.shared(request)
    scorer.shared(_request(2000, 64, seed=1))
    warm = scorer.shared(request)

    assert warm.timing.cache_hit
    assert _logits(cold) == _logits(warm)


def test_cost_model_holds_against_the_allocator(scorer: TorchScorer) -> None:
    for state_tokens, decisions in ((200, 4), (1000, 21), (4000, 64)):
        request = _request(state_tokens, decisions)
        scorer.forget_prefixes()
        encoded = scorer._encoder.encode(request)
        lengths = sorted(len(decision.suffix_ids) for decision in encoded.decisions)
        group = scorer._budget.groups(lengths, len(encoded.prefix_ids))[-1]
        suffixes = [encoded.decisions[0].suffix_ids[:1] * lengths[index] for index in group]
        with torch.inference_mode():
            prefix = scorer._backbone.prefill(encoded.prefix_ids)
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            scorer._backbone.branches(prefix, suffixes)
            torch.cuda.synchronize()
            measured = torch.cuda.max_memory_allocated() - before
        planned = scorer._budget.cost.group_bytes([len(s) for s in suffixes], prefix.length)

        print(
            f"\n{len(group)} branches × {state_tokens} tokens: {planned / measured:.2f} of measured"
        )
        assert 0.75 <= planned / measured <= 1.25


def test_out_of_memory_is_a_503_that_keeps_nothing(scorer: TorchScorer) -> None:
    request = _request(4000, 64)
    expected = _logits(scorer.shared(request))
    scorer.forget_prefixes()
    free = int(CAP_GIB * GIB) - torch.cuda.memory_reserved()
    ballast = torch.empty(max(1, free - 64 * 2**20), dtype=torch.uint8, device="cuda")
    before = torch.cuda.memory_allocated()

    with pytest.raises(OutOfMemory) as failure:
        scorer.shared(request)

    assert failure.value.__context__ is None
    assert torch.cuda.memory_allocated() <= before
    del ballast
    assert _logits(scorer.shared(request)) == expected


def test_burst_goes_back_to_the_card(scorer: TorchScorer) -> None:
    scorer.forget_prefixes()
    torch.cuda.empty_cache()
    resting = torch.cuda.memory_reserved()
    scorer.shared(_request(4096, 64))

    held = torch.cuda.memory_reserved() - resting - scorer.status().prefix_cache.bytes
    print(f"\nover the resting footprint after a burst: {held / GIB:.2f} GiB")
    assert held <= BURST_SLACK_BYTES


def test_speed_is_printed(scorer: TorchScorer) -> None:
    request = _request(1000, 21)
    cold, warm = [], []
    for _ in range(6):
        scorer.forget_prefixes()
        for seconds in (cold, warm):
            torch.cuda.synchronize()
            started = time.perf_counter()
            scorer.shared(request)
            seconds.append(time.perf_counter() - started)
    one = ScoreRequest(request.state, request.decisions[:1])
    started = time.perf_counter()
    scorer.direct(one)
    direct = time.perf_counter() - started

    print(
        f"\n{torch.cuda.get_device_name(0)}, {scorer.status().linear_attention_kernels} kernels: "
        f"21 decisions × 1,000 tokens cold p50 {statistics.median(cold[1:]) * 1e3:.0f} ms, warm "
        f"{statistics.median(warm[1:]) * 1e3:.0f} ms; one direct {direct * 1e3:.0f} ms"
    )
    assert len(cold) == len(warm)
