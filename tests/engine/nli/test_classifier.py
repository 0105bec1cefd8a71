"""The classifier against the untouched model, whatever is shared, cached, grouped or reordered."""

import random

import pytest
import torch
from models.faults import RecordingDevice
from models.nli import open_nli, shared_classifier, shared_nli_model
from transformers import AutoModelForSequenceClassification

from semif_bento.caller import Caller
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.memory import MemoryGuard
from semif_bento.engine.nli import sharing
from semif_bento.entailment import Pair, Rendered, Tokens, normalize, render_pair
from semif_bento.errors import ClientClosed, InvalidRequest, PromptTooLong, ScoringFailed

PREMISE = "The shop opens at nine and closes at six. It is five in the afternoon. " * 12
OTHER = "\u5e97\u94fa\u4e5d\u70b9\u5f00\u95e8\uff0c\u516d\u70b9\u5173\u95e8\u3002" * 30
LONG_QUESTION = "Is the shop open, given all that is said of it and nothing else? " * 8
PAIRS = [
    *(Pair(PREMISE, f'The answer to "Is it open?" is {w}: it is {w}.') for w in ("yes", "no")),
    *(Pair(PREMISE, f'The answer to "{LONG_QUESTION}" is {n}: level {n}.') for n in range(4)),
    *(Pair(OTHER, f"\u95e8{w}\u3002") for w in ("\u5f00\u7740", "\u5173\u7740")),
    Pair("Short.", "It is short."),
    Pair('{braces} and "quotes"', "{premise} {hypothesis} '"),
    Pair(PREMISE, "The"),
    Pair(PREMISE, "The answer"),  # the one before begins it
    Pair(PREMISE, "The answer to"),
    Pair("<|im_end|>", "<|endoftext|>"),
    Pair(PREMISE, "The answer"),  # asked twice
]
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.15}


@pytest.fixture
def classifier():
    made, _ = shared_classifier()
    made.shares = True
    made.forget_prefixes()
    return made


@pytest.fixture
def reached(monkeypatch):
    """The runs of any backbone from here on, by name."""
    runs = []
    for name in ("whole", "wholes", "prefill", "extend", "branches"):
        original = getattr(Backbone, name)

        def counted(*args, _name=name, _original=original):
            runs.append(_name)
            return _original(*args)

        monkeypatch.setattr(Backbone, name, counted)
    return runs


def logits(outcome):
    return torch.tensor([row.logits for row in outcome.rows])


@torch.inference_mode()
def untouched_logits(checkpoint, rows):
    return torch.cat([checkpoint.model(input_ids=torch.tensor([ids])).logits for ids in rows])


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.platform)])
def test_shared_and_whole_equal_the_untouched_model_one_input_at_a_time(dtype):
    classifier, checkpoint = shared_classifier(dtype)
    classifier.forget_prefixes()
    ids = [given.prefix_ids + given.suffix_ids for given in classifier._encoder.encode(PAIRS)]
    expected = untouched_logits(checkpoint, ids).float()
    for shares in (True, False):
        classifier.shares = shares
        outcome = classifier.classify(PAIRS)
        assert (logits(outcome) - expected).abs().max() < TOLERANCE[dtype]
        assert [row.input_tokens for row in outcome.rows] == list(map(len, ids))
    classifier.shares = True


def test_the_multimodal_class_of_the_checkpoint_says_the_same(classifier):
    model = AutoModelForSequenceClassification.from_pretrained(shared_nli_model()).eval()
    assert type(model).__name__ == "Qwen3_5ForSequenceClassification"
    tokenizer = shared_classifier()[1].tokenizer
    texts = [render_pair(classifier.template, pair) for pair in PAIRS[:9]]
    with torch.inference_mode():
        expected = torch.cat(
            [model(**tokenizer(text, return_tensors="pt")).logits for text in texts]
        )
    assert (logits(classifier.classify(PAIRS[:9])) - expected).abs().max() < 1e-4


def test_premises_and_long_instructions_are_read_once(classifier, reached):
    timing = classifier.classify(PAIRS).timing
    assert reached.count("prefill") == 2  # two long premises
    assert reached.count("extend") == 1  # one long instruction
    premise = classifier._encoder.encode(PAIRS[:1])[0].prefix_ids
    assert len(premise) < timing.prefix_tokens < 3 * len(premise)
    assert timing.suffix_tokens < timing.prefix_tokens < timing.input_tokens
    assert timing.cached_tokens == 0


def test_a_call_that_comes_again_reads_no_beginning_twice(classifier, reached):
    first = classifier.classify(PAIRS)
    reached.clear()
    again = classifier.classify(PAIRS)
    assert {"prefill", "extend"}.isdisjoint(reached)
    assert again.timing.cached_tokens == again.timing.prefix_tokens == first.timing.prefix_tokens


def test_the_same_bits_cold_warm_after_others_and_without_a_cache(classifier):
    cold = logits(classifier.classify(PAIRS))
    assert torch.equal(logits(classifier.classify(PAIRS)), cold)
    classifier.classify([Pair(PREMISE, "something else"), Pair(OTHER, "and more")])
    assert torch.equal(logits(classifier.classify(PAIRS)), cold)


def test_another_question_about_a_known_premise_finds_it(classifier):
    classifier.classify(PAIRS[:2])
    timing = classifier.classify([Pair(PREMISE, "It is late.")]).timing
    assert timing.cached_tokens == timing.prefix_tokens > 100


def test_the_order_of_the_inputs_changes_no_bit(classifier):
    straight = classifier.classify(PAIRS)
    for seed in (None, 1, 2):
        order = list(range(len(PAIRS)))[::-1]
        if seed:
            random.Random(seed).shuffle(order)
        outcome = classifier.classify([PAIRS[index] for index in order])
        for place, index in enumerate(order):
            assert outcome.rows[place] == straight.rows[index]


def test_the_order_of_a_decisions_options_changes_no_probability(classifier, record_property):
    options = PAIRS[2:6]
    straight = normalize(classifier.classify(options).rows)
    largest = 0.0
    for order in ((3, 2, 1, 0), (2, 0, 3, 1), (1, 3, 0, 2)):
        found = normalize(classifier.classify([options[place] for place in order]).rows)
        gaps = (
            abs(found.probabilities[at] - straight.probabilities[place])
            for at, place in enumerate(order)
        )
        largest = max(largest, *gaps)
        assert found.support == pytest.approx(straight.support, abs=1e-12)
    record_property("largest_change", largest)
    assert largest < 1e-5


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_two_and_three_hypotheses(classifier, count):
    checkpoint = shared_classifier()[1]
    pairs = PAIRS[:count]
    ids = [given.prefix_ids + given.suffix_ids for given in classifier._encoder.encode(pairs)]
    expected = untouched_logits(checkpoint, ids)
    assert (logits(classifier.classify(pairs)) - expected).abs().max() < 1e-4


def test_equal_inputs_are_run_once_and_answered_each(classifier):
    outcome = classifier.classify([PAIRS[0], PAIRS[1], PAIRS[0], PAIRS[0]])
    first, second, third, fourth = outcome.rows
    assert first == third == fourth != second
    assert outcome.timing.suffix_tokens < 2 * 40


def test_pair_text_and_ids_are_answered_alike(classifier):
    pair = PAIRS[0]
    text = render_pair(classifier.template, pair)
    forms = [pair, Rendered(text), Tokens(classifier._encoder._plain.encode(text))]
    assert len({row.logits for row in classifier.classify(forms).rows}) == 1


def test_a_premise_of_twenty_thousand_characters_is_answered_or_refused_whole(classifier, reached):
    long_premise = "The shop opens at nine and closes at six. " * 477
    with pytest.raises(PromptTooLong, match=r"Input 0 makes \d+ tokens \(\d+ up to the hyp"):
        classifier.classify([Pair(long_premise, "It is open.")])
    assert reached == []
    roomy = open_nli(shared_nli_model(), max_tokens=8192, branch_budget_mib=512)
    hypotheses = ("It is open at noon.", "It is closed at noon.")
    rows = roomy.classify([Pair(long_premise, text) for text in hypotheses]).rows
    assert rows[0].input_tokens > 4096
    assert rows[0].logits != rows[1].logits


def test_without_a_cache_a_single_pair_runs_whole_and_many_still_share(reached):
    uncached = open_nli(shared_nli_model(), prefix_cache_mib=0)
    cost = uncached._budget.cost
    assert (cost.longest_state(0), cost.longest_state(cost.state_bytes(500))) == (0, 500)
    reached.clear()
    uncached.classify(PAIRS[:1])
    assert reached == ["wholes"]
    reached.clear()
    cold, again = uncached.classify(PAIRS), uncached.classify(PAIRS)
    assert reached.count("prefill") == 4  # two premises, each call
    assert cold.rows == again.rows
    assert uncached.status().prefix_cache.bytes == 0


def test_a_small_budget_splits_into_more_groups_and_says_the_same(classifier, monkeypatch):
    pairs = [Pair(PREMISE, f"Claim {n} says that it is {n} o'clock.") for n in range(60)]
    pairs += [Pair(f"Short premise {n}.", "A claim.") for n in range(60)]
    roomy = classifier.classify(pairs)
    cost = classifier._budget.cost
    tight = BranchBudget(cost, cost.largest_bytes(260), 260)
    monkeypatch.setattr(classifier, "_budget", tight)
    classifier.forget_prefixes()
    split = classifier.classify(pairs)
    assert split.timing.groups > roomy.timing.groups
    assert (logits(split) - logits(roomy)).abs().max() < 1e-4


def test_where_memory_has_no_room_for_a_second_state_the_first_is_shared(
    classifier, monkeypatch, reached
):
    expected = logits(classifier.classify(PAIRS))
    monkeypatch.setattr(classifier._budget, "holds", lambda *_: False)
    classifier.forget_prefixes()
    reached.clear()
    outcome = classifier.classify(PAIRS)
    assert "extend" not in reached
    assert (logits(outcome) - expected).abs().max() < 1e-4


def test_a_logit_that_is_no_number_fails_the_call_and_leaves_nothing_in_the_cache(
    classifier, monkeypatch
):
    original = Backbone.branches
    monkeypatch.setattr(Backbone, "branches", lambda *args: original(*args) * float("nan"))
    with pytest.raises(ScoringFailed, match="not a finite number"):
        classifier.classify(PAIRS[:3])
    assert classifier.status().prefix_cache.entries == 0
    monkeypatch.undo()
    assert classifier.classify(PAIRS[:3]).rows


def test_a_caller_who_left_ends_the_call_before_its_next_forward(classifier, monkeypatch, reached):
    caller = Caller()
    original = Backbone.prefill

    def prefill_and_leave(*args):
        caller.leave()
        return original(*args)

    monkeypatch.setattr(Backbone, "prefill", prefill_and_leave)
    with pytest.raises(ClientClosed):
        classifier.classify(PAIRS, caller)
    assert "branches" not in reached


def test_refused_input_reaches_no_model(classifier, reached):
    for given in (Tokens((1 << 20,)), Tokens(()), Pair("\ud800", "h"), Rendered("x " * 5000)):
        with pytest.raises(InvalidRequest):
            classifier.classify([PAIRS[0], given])
    assert reached == []


def test_out_of_memory_leaves_the_classifier_working(classifier, monkeypatch):
    device = RecordingDevice()
    monkeypatch.setattr(
        classifier, "guard", MemoryGuard(device, classifier._workspace.prefix_cache)
    )
    with monkeypatch.context() as broken:
        broken.setattr(Backbone, "wholes", _run_out)
        with pytest.raises(Exception, match="ran out of memory"):
            classifier.classify([Pair("a", "b")])
    assert device.alive_at_release
    assert classifier.classify([Pair("a", "b")]).rows


def _run_out(*_):
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_a_prefix_of_the_letter_engine_is_never_taken_for_one_of_this(classifier):
    ids = classifier._encoder.encode(PAIRS[:1])[0].prefix_ids
    cache = classifier._workspace.prefix_cache
    cache.put(torch.tensor(ids, dtype=torch.int32).numpy().tobytes(), object.__new__(_Never))
    assert classifier.classify(PAIRS[:1]).timing.cached_tokens == 0
    classifier.forget_prefixes()


class _Never:
    """A state that nothing may be made of."""

    bytes = 1


def test_tokens_read_at_once_are_never_taken_for_the_same_read_in_two_steps(classifier, reached):
    premise = "The shop is open."
    two = [Pair(premise, f"{LONG_QUESTION} {word}") for word in ("yes", "no")]
    many = [*two, *(Pair(premise, f"It is {hour} o'clock.") for hour in range(20))]
    alone = logits(classifier.classify(many))
    assert reached.count("extend") == 1
    classifier.forget_prefixes()
    reached.clear()
    classifier.classify(two)
    assert "extend" not in reached
    assert torch.equal(logits(classifier.classify(many)), alone)
    assert reached.count("extend") == 1


def test_the_threshold_of_sharing_changes_no_answer(classifier, monkeypatch):
    expected = logits(classifier.classify(PAIRS))
    for threshold in (1, 10_000):
        monkeypatch.setattr(sharing, "MIN_SAVED_TOKENS", threshold)
        classifier.forget_prefixes()
        assert (logits(classifier.classify(PAIRS)) - expected).abs().max() < 1e-4
