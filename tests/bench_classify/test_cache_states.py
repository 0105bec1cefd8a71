from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from semif_bento.bench.classify.inputs import FrozenInputs
from semif_bento.bench.classify.measurement import Measurement, measure
from semif_bento.bench.classify.passes import STATES, run_pass
from semif_bento.bench.classify.reference import Reference, Triple
from semif_bento.bench.classify.target import Target
from semif_bento.engine.nli.classifier import TorchClassifier
from semif_bento.entailment import ClassifyOutcome, PairLogits
from semif_bento.errors import ScoringFailed


class Altered:
    """The real classifier, with its answers changed on the way out."""

    def __init__(
        self,
        classifier: TorchClassifier,
        alter: Callable[["Altered", Sequence[PairLogits]], Sequence[PairLogits]],
    ) -> None:
        self._classifier, self._alter = classifier, alter
        self.shares, self.calls = True, 0

    def forget_prefixes(self) -> None:
        self._classifier.forget_prefixes()

    def classify(self, inputs: Sequence[object]) -> ClassifyOutcome:
        self.calls += 1
        self._classifier.shares = self.shares
        try:
            outcome = self._classifier.classify(inputs)
        finally:
            self._classifier.shares = True
        return replace(outcome, rows=tuple(self._alter(self, outcome.rows)))


def measured(target: Target, inputs: FrozenInputs, reference: Reference) -> Measurement:
    return measure(target, inputs, reference, batch=4, passes=3)


def with_logits(row: PairLogits, logits: Triple) -> PairLogits:
    return PairLogits(logits, row.input_tokens, row.tokens_sha256)


def test_every_pass_of_every_state_agrees_and_the_states_are_what_they_say(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    seen: list[tuple[int, str]] = []

    found = measure(
        target,
        inputs,
        reference,
        batch=4,
        passes=3,
        on_pass=lambda checked: seen.append((checked.run.round, checked.run.state)),
    )

    assert seen == [(round_, state) for round_ in range(4) for state in STATES]
    assert found.faults() == ()
    assert all(checked.check.agreement.labels_equal == 7 for checked in found.passes)
    for checked in found.passes:
        run = checked.run
        assert len(run.batch_seconds) == 2
        assert (run.prefix_tokens > 0) == (run.state != "disabled")
        if run.state == "warm":
            assert run.cached_tokens == run.prefix_tokens
    figures = {one.state: one for one in found.states}
    assert all(len(one.seconds) == 3 for one in found.states)
    assert figures["warm"].cached_share == 1.0
    assert target.classifier.shares


def test_a_cleared_cache_gives_nothing_on_the_first_sight_of_a_premise(
    target: Target, inputs: FrozenInputs
) -> None:
    run_pass(target.classifier, inputs, "warm", 1, batch=7)

    found = run_pass(target.classifier, inputs, "cold", 1, batch=7)

    assert found.prefix_tokens > 0
    assert found.cached_tokens == 0


def test_first_use_is_no_part_of_a_median(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    found = measured(target, inputs, reference)

    for figures in found.states:
        runs = [one.run for one in found.passes if one.run.state == figures.state]
        assert figures.first_s == runs[0].seconds
        assert figures.seconds == tuple(run.seconds for run in runs[1:])
        assert figures.median_s == sorted(figures.seconds)[1]


def test_fewer_than_three_passes_give_no_median(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    with pytest.raises(ValueError, match="3 passes"):
        measure(target, inputs, reference, batch=4, passes=2)


def test_a_label_that_differs_in_the_warm_up_alone_is_a_fault_and_the_row_is_named(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    def turn_first(classifier: Altered, rows: Sequence[PairLogits]) -> Sequence[PairLogits]:
        if classifier.calls > 1:
            return rows
        return [with_logits(rows[0], tuple(-logit for logit in rows[0].logits)), *rows[1:]]

    altered = replace(target, classifier=Altered(target.classifier, turn_first))

    faults = measured(altered, inputs, reference).faults()

    assert faults[0] == "disabled, warm-up: another label for parcels-yes."
    assert not any("pass 1" in fault for fault in faults)


def test_a_winner_that_differs_when_warm_is_a_fault_and_the_group_is_named(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    def lift_last(classifier: Altered, rows: Sequence[PairLogits]) -> Sequence[PairLogits]:
        if not classifier.shares:
            return rows
        entailed = [replace(row) for row in rows]
        lowest = min(range(3), key=lambda place: rows[place].probabilities[1])
        entailed[lowest] = with_logits(rows[lowest], (0.0, 50.0, 0.0))
        return entailed

    altered = replace(target, classifier=Altered(target.classifier, lift_last))

    faults = measured(altered, inputs, reference).faults()

    assert any(fault.startswith("warm, pass 3: another winner in parcels") for fault in faults)
    assert not any(fault.startswith("disabled") for fault in faults)


def test_an_answer_for_other_tokens_is_refused(target: Target, inputs: FrozenInputs) -> None:
    altered = Altered(target.classifier, lambda _, rows: list(reversed(rows)))

    with pytest.raises(ScoringFailed, match="'parcels-yes' was answered for other token ids"):
        run_pass(altered, inputs, "cold", 0, batch=4)


def test_a_ratio_under_its_bar_is_told(
    target: Target, inputs: FrozenInputs, reference: Reference
) -> None:
    found = measured(target, inputs, reference)
    disabled, cold, warm = found.states
    level = replace(
        found,
        states=(
            replace(disabled, median_s=3.0),
            replace(cold, median_s=2.0),
            replace(warm, median_s=0.5),
        ),
    )

    assert level.missed_bars() == ("warm is 6.00× disabled, under the bar of 8×.",)
