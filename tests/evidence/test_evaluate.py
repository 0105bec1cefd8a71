"""Engines asked in three orders: what counts as a flip, what is asked again, what is sampled."""

from dataclasses import replace

import pytest
from samples import ToldScorer, make_row, read_digits
from stub import TOKEN

from semif_bento.decisions import Decision, Option
from semif_bento.engine.registry import LETTERS, NLI
from semif_bento.errors import EvidenceError, RequestError
from semif_bento.evidence.engine_target import EngineTarget, open_engine_service
from semif_bento.evidence.evaluation import evaluate, evaluate_engine, take_sample
from semif_bento.evidence.rows import RowFile

ROWS = [make_row(n, options=2 + n % 3, answer=n % 2, tags={"question": "q"}) for n in range(6)]
ASKED = 2 * 2 + 4 * 3
"""Two options have two orders, more have three."""


def always_first(_, decision):
    return [3.0, *(0.0 for _ in decision.options[1:])]


def target_of(logits=read_digits, kind=LETTERS):
    scorer = ToldScorer(logits)
    return EngineTarget(scorer, kind, "direct-options-v1")


def test_an_engine_that_takes_the_first_option_always_changes_its_answer(tmp_path):
    [found] = evaluate_engine(target_of(always_first), ROWS, tmp_path).questions
    assert (found.reversed.share, found.rotated.share) == (1.0, 1.0)
    assert (found.reversed.near_ties, found.rotated.near_ties) == (0, 0)
    assert found.right == 3


def test_an_engine_that_reads_what_options_say_never_changes_its_answer(tmp_path):
    [found] = evaluate_engine(target_of(), ROWS, tmp_path).questions
    assert (found.reversed.changed, found.rotated.changed) == (0, 0)


def test_an_answer_between_equal_options_changes_as_a_near_tie(tmp_path):
    even = target_of(lambda _, decision: [0.0] * len(decision.options))
    [found] = evaluate_engine(even, ROWS, tmp_path).questions
    assert (found.reversed.changed, found.reversed.near_ties) == (6, 6)


def test_rotated_by_one_and_reversed_are_told_apart(tmp_path):
    def first_or_last(_, decision):
        """The first option's number or the last one's, whichever is the lower, wins."""
        lower = min(decision.options[0].id, decision.options[-1].id)
        return [3.0 * (option.id == lower) for option in decision.options]

    rows = [make_row(0, options=3)]
    [found] = evaluate_engine(target_of(first_or_last), rows, tmp_path).questions
    assert (found.reversed.changed, found.rotated.changed) == (0, 0)

    def middle(_, decision):
        return [3.0 * (place == 1) for place in range(len(decision.options))]

    [found] = evaluate_engine(target_of(middle), rows, tmp_path / "other").questions
    assert (found.reversed.changed, found.rotated.changed) == (0, 1)


def test_a_run_that_was_ended_goes_on_and_asks_nothing_twice(tmp_path):
    whole = evaluate_engine(target_of(), ROWS, tmp_path / "whole")
    first = target_of()
    first.scorer.fail_after = 7
    with pytest.raises(RequestError, match="It failed"):
        evaluate_engine(first, ROWS, tmp_path)
    second = target_of()
    found = evaluate_engine(second, ROWS, tmp_path)
    assert len(first.scorer.calls) == 7
    assert len(second.scorer.calls) == ASKED - 7
    assert found == whole
    third = target_of()
    assert evaluate_engine(third, ROWS, tmp_path) == whole
    assert third.scorer.calls == []


def test_engines_do_not_find_each_others_answers(tmp_path):
    evaluate_engine(target_of(), ROWS, tmp_path)
    other = target_of(always_first, NLI)
    evaluate_engine(other, ROWS, tmp_path)
    assert len(other.scorer.calls) == ASKED


def test_a_refused_row_is_named_once_and_counted_nowhere(tmp_path):
    target = target_of()
    target.scorer.refused = {"row3"}
    found = evaluate_engine(target, ROWS, tmp_path)
    assert found.row_errors == ("line 4: The prompt has 9 tokens; at most 8 are taken.",)
    assert found.questions[0].rows == 5


def test_an_engine_that_refuses_everything_ends_it(tmp_path):
    target = target_of()
    target.scorer.refused = {row.decision.id for row in ROWS}
    with pytest.raises(EvidenceError, match="letters answers no row"):
        evaluate_engine(target, ROWS, tmp_path)


def test_a_sample_is_the_same_for_the_same_seed_and_grows_with_the_limit():
    rows = [make_row(n, tags={"question": f"q{n % 2}"}) for n in range(40)]
    few, more = take_sample(rows, 3, 0), take_sample(rows, 5, 0)
    assert take_sample(rows, 3, 0) == few
    assert take_sample(rows, 3, 1) != few
    assert take_sample(rows, None, 0) == rows
    assert [sum(row.tags["question"] == f"q{n}" for row in few) for n in range(2)] == [3, 3]
    assert all(row in more for row in few)
    assert [row.line for row in more] == sorted(row.line for row in more)


def test_typed_questions_are_asked_in_each_engines_words(tmp_path):
    seen = []

    def watch(_, decision):
        seen.append((decision.question, decision.kind, decision.options[0]))
        return [float(option.id == "false") for option in decision.options]

    options = (Option("true", "", "yes"), Option("false", "", "no"))
    decision = Decision("r", "Is it wet?", options, "yes_no")
    row = replace(make_row(0, decision=decision), answer="false")
    letters = evaluate_engine(target_of(watch), [row], tmp_path)
    nli = evaluate_engine(target_of(watch, NLI), [row], tmp_path)
    assert seen[0] == ("Is it wet?", "yes_no", Option("true", "The answer is yes.", "yes"))
    assert seen[2] == ("Is it wet?", "yes_no", Option("true", "yes", "yes"))
    assert [found.questions[0].question for found in (letters, nli)] == ["yes_no", "yes_no"]
    assert letters.questions[0].right == 1


def test_a_run_over_a_service_finds_what_a_run_in_process_finds(stub, tmp_path):
    file = RowFile(tuple(ROWS), (), "0" * 64)
    told = {"data": "rows", "place": "here"}
    remote = open_engine_service(stub.url, TOKEN, LETTERS)
    over = evaluate([remote], file, directory=tmp_path / "over", **told)
    remote.close()
    here = evaluate([target_of()], file, directory=tmp_path / "here", **told)

    def figures(found):
        keys = ("question", "rows", "right", "interval", "majority", "ece", "coverage", "bins")
        return [
            [getattr(quality, key) for key in (*keys, "reversed", "rotated")]
            for quality in found.engines[0].questions
        ]

    assert figures(over) == figures(here)
    assert over.engines[0].model == here.engines[0].model
