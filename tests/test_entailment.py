"""Decisions by entailment: the published vectors, rendering, versions and hashes."""

import hashlib
import itertools
import json
import math
import random

import pytest

from semif_bento.calibration import CalibrationTable
from semif_bento.entailment import (
    LABELS,
    PAIR_TEMPLATE,
    Pair,
    PairLogits,
    decision_sha256,
    normalize,
    prompt_version,
    render_hypothesis,
    render_pair,
    render_premise,
    template_version,
)


def row(*logits: float) -> PairLogits:
    return PairLogits(logits, 1, "")


def entailed(e: float) -> PairLogits:
    """A row whose entailment probability is `e`."""
    rest = (1 - e) / 2
    return row(math.log(rest), math.log(e), math.log(rest))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0.3, 0.9), (0.25, 0.75)),
        ((0.6, 0.6, 0.3), (0.4, 0.4, 0.2)),
        ((0.1, 0.2, 0.6, 0.1), (0.1, 0.2, 0.6, 0.1)),
    ],
)
def test_the_published_vectors_of_normalized_entailment(given, expected):
    found = normalize([entailed(e) for e in given])
    assert found.probabilities == pytest.approx(expected)
    assert found.support == pytest.approx(max(given))
    assert found.option_logits == pytest.approx([math.log(e) for e in given])


def test_the_published_score_is_the_mean_level():
    found = normalize([entailed(e) for e in (0.1, 0.2, 0.6, 0.1)])
    score = sum(level * share for level, share in enumerate(found.probabilities))
    assert score == pytest.approx(1.7)


def test_nothing_entailed_is_uniform_with_finite_logits_and_no_support():
    found = normalize([row(3000, 0, 0), row(0, 0, 2000), row(5000, -5000, 0)])
    assert found.probabilities == (1 / 3, 1 / 3, 1 / 3)
    assert found.support == 0
    assert all(map(math.isfinite, found.option_logits))


def test_one_option_that_is_entailed_at_all_takes_everything_from_those_that_underflow():
    found = normalize([row(3000, 0, 0), row(700, 0, 0)])
    assert found.probabilities == (0, 1)
    assert found.support == pytest.approx(math.exp(-700), rel=1e-9)


def test_support_of_an_option_is_not_moved_by_others():
    alone = normalize([entailed(0.9), entailed(0.1)])
    beside = normalize([entailed(0.9), entailed(0.1), entailed(0.8)])
    assert alone.support == beside.support
    assert alone.option_logits == beside.option_logits[:2]


def test_two_options_may_both_be_established_and_the_sum_is_still_one():
    found = normalize([entailed(0.99), entailed(0.99)])
    assert found.probabilities == (0.5, 0.5)
    assert found.support == pytest.approx(0.99)


def random_rows(seed: int, count: int) -> list[PairLogits]:
    draw = random.Random(seed)
    scale = draw.choice((1, 10, 100, 1000))
    return [row(*(draw.gauss(0, scale) for _ in range(3))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(40))
def test_shares_are_a_distribution_and_the_order_of_options_moves_no_bit(seed):
    rows = random_rows(seed, 2 + seed % 7)
    found = normalize(rows)
    assert math.fsum(found.probabilities) == pytest.approx(1, abs=1e-14)
    assert all(0 <= share <= 1 for share in found.probabilities)
    assert found.support == max(one.probabilities[1] for one in rows)
    for order in itertools.islice(itertools.permutations(range(len(rows))), 1, 12):
        other = normalize([rows[place] for place in order])
        assert other.probabilities == tuple(found.probabilities[place] for place in order)
        assert other.support == found.support


@pytest.mark.parametrize("temperature", [0.05, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("seed", range(20))
def test_calibration_never_moves_the_winner(seed, temperature):
    found = normalize(random_rows(seed, 2 + seed % 5))
    table = CalibrationTable({"w": temperature})
    calibrated = table.view("w", found.option_logits).probabilities
    winner = found.probabilities.index(max(found.probabilities))
    assert calibrated[winner] == max(calibrated)
    at_one = CalibrationTable({"w": 1.0}).view("w", found.option_logits).probabilities
    if found.support > 1e-300:
        assert at_one == pytest.approx(found.probabilities, abs=1e-12)


def test_probabilities_of_a_row_are_the_softmax_in_the_order_of_the_labels():
    assert LABELS == ("contradiction", "entailment", "neutral")
    weights = [math.exp(logit) for logit in (0.5, -1.0, 2.0)]
    expected = [weight / sum(weights) for weight in weights]
    assert row(0.5, -1.0, 2.0).probabilities == pytest.approx(expected)


def test_a_pair_is_its_template_with_both_parts_stripped():
    assert render_pair(PAIR_TEMPLATE, Pair(" P \n", " H \n")) == "Premise: P\nHypothesis: H"


@pytest.mark.parametrize(
    "text", ["{hypothesis}", "{premise} {0}", "{}", "}{", "{{x}}", "%s %(a)s", "\\1 \\g<0>", "$a"]
)
def test_braces_and_the_like_are_text_wherever_they_stand(text):
    assert render_pair(PAIR_TEMPLATE, Pair(text, text)) == f"Premise: {text}\nHypothesis: {text}"
    hypothesis = render_hypothesis(text, text, text)
    assert hypothesis == f'The answer to "{text}" is {text}: {text}'


def test_a_template_of_another_shape_keeps_all_that_stands_around():
    pair = Pair("p", "h")
    assert render_pair("<{premise}> so: {hypothesis}?", pair) == "<p> so: h?"
    assert render_pair("{premise}{hypothesis}", pair) == "ph"


@pytest.mark.parametrize(
    ("state", "premise"),
    [
        ("plain {text}", "plain {text}"),
        (" spaces stay here ", " spaces stay here "),
        ({"b": 1, "a": [1.5, None, True, "é 中文"]}, '{"b": 1, "a": [1.5, null, true, "é 中文"]}'),
        (["a", {}], '["a", {}]'),
        ({"n": 10**40}, f'{{"n": {10**40}}}'),
    ],
)
def test_a_state_is_text_as_it_is_or_json_in_its_own_order(state, premise):
    assert render_premise(state) == premise
    if not isinstance(state, str):
        assert json.loads(render_premise(state)) == state


@pytest.mark.parametrize(
    ("question", "label", "criterion", "expected"),
    [
        ("Is it?", "yes", "It is.", 'The answer to "Is it?" is yes: It is.'),
        ("", "yes", "yes", 'The answer to "" is yes: yes'),
        (" Is it?\n", "no", "no", 'The answer to "Is it?" is no: no'),
        ('Say "hi"?', "a", "b", 'The answer to "Say "hi"?" is a: b'),
        ("什么?", "是", "对", 'The answer to "什么?" is 是: 对'),
    ],
)
def test_a_hypothesis_is_the_versioned_sentence(question, label, criterion, expected):
    assert render_hypothesis(question, label, criterion) == expected


def test_versions_name_the_known_template_and_tell_any_other_by_its_hash():
    assert template_version(PAIR_TEMPLATE) == "nli-pair-v1"
    assert prompt_version(PAIR_TEMPLATE) == "nli-hyp-v1/nli-pair-v1"
    other = "P: {premise}\nH: {hypothesis}"
    assert template_version(other) == f"nli-pair-{sha(other)[:12]}"
    assert prompt_version(other) == f"nli-hyp-v1/nli-pair-{sha(other)[:12]}"


@pytest.mark.parametrize(
    "template", [PAIR_TEMPLATE, "{premise}|{hypothesis}", "é{premise}{hypothesis}."]
)
def test_a_decisions_hash_is_that_of_its_pairs_hashes_in_order(template):
    pairs = [Pair("中文 {p}", "a "), Pair("中文 {p}", "b"), Pair(" q", "a")]
    texts = [render_pair(template, pair) for pair in pairs]
    assert decision_sha256(template, pairs) == sha("".join(map(sha, texts)))
    assert decision_sha256(template, pairs[::-1]) == sha("".join(map(sha, texts[::-1])))
    assert decision_sha256(template, pairs) != decision_sha256(template, pairs[::-1])


def test_white_space_around_a_part_changes_no_hash():
    bare, wide = [Pair("p", "h")], [Pair("\n p ", " h\t")]
    assert decision_sha256(PAIR_TEMPLATE, bare) == decision_sha256(PAIR_TEMPLATE, wide)


def test_a_lone_surrogate_has_no_hash():
    with pytest.raises(UnicodeEncodeError):
        decision_sha256(PAIR_TEMPLATE, [Pair("\ud800", "h")])
