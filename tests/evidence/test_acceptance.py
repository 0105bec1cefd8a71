"""Each check passes on a scorer that is right, and fails on one with the fault it looks for."""

import dataclasses
import itertools
from types import SimpleNamespace

import pytest
from samples import ToldScorer, make_row, make_target, read_digits

from semif_bento.errors import EvidenceError, OutOfMemory
from semif_bento.evidence import comparison, speed
from semif_bento.evidence.acceptance import Plan, examine
from semif_bento.evidence.acceptance_page import render_page
from semif_bento.evidence.rows import RowFile

ROWS = tuple(
    make_row(index, options=2 + index % 3, answer=index % 2, state=f"state {index // 2}")
    for index in range(24)
)
FILE = RowFile(ROWS, ("line 99: it is malformed.",), "ab" * 32)
NAMES = [
    "1 parity with SemIf",
    "2 noise floor",
    "3 negative control",
    "4 shared against direct",
    "5 speed",
    "6 memory",
]


def reference(logits=read_digits, rows=ROWS):
    scorer = ToldScorer(logits)
    return {row.decision.id: scorer.direct(row.request()).scores for row in rows}


def run(scorer=None, theirs=None, **plan):
    target = make_target(scorer or ToldScorer())
    return examine(target, FILE, theirs or reference(), Plan(runs=3, **{"sample_rows": 24, **plan}))


def verdicts(found):
    return {check.name: check.passed for check in found.checks}


def only_fails(found, name):
    return verdicts(found) == {each: each != name for each in NAMES}


def shifted(kind, by):
    """Logits that are off by `by` in calls of one kind, at the first option."""

    def logits(asked, decision):
        first, *others = read_digits(asked, decision)
        return [first + by * (asked == kind), *others]

    return logits


@pytest.fixture(autouse=True)
def _sharing_pays(monkeypatch):
    """Calls of the told scorer take no time: each look at the clock is a second later, so a shared
    call takes one, and 21 direct calls are told to take 21."""
    clock = itertools.count()
    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    monkeypatch.setattr(speed, "_time_direct", lambda *args: 21.0)


def test_a_scorer_that_is_right_passes_all_six():
    found = run()
    assert [check.name for check in found.checks] == NAMES
    assert found.passed, verdicts(found)
    assert found.row_errors == ("line 99: it is malformed.",)
    assert found.checks[0].figures["hashes"] == found.checks[0].figures["rows"] == 24


def test_other_logits_than_the_references_fail_parity():
    found = run(theirs=reference(shifted("direct", 0.5)))
    assert only_fails(found, NAMES[0])
    assert found.checks[0].figures["largest_logit_gap"] == pytest.approx(0.5)


def test_another_prompt_than_the_references_fails_parity():
    theirs = reference()
    theirs["row3"] = dataclasses.replace(theirs["row3"], prompt_sha256="0" * 64)
    assert only_fails(run(theirs=theirs), NAMES[0])


def test_a_near_tie_that_falls_the_other_way_passes_parity_and_is_named():
    def tied(*first):
        def logits(kind, decision):
            own = read_digits(kind, decision)
            return [*first, *own[2:]] if decision.id == "row4" else own

        return logits

    # Both are over every other logit, 88 at most.
    found = run(ToldScorer(tied(100.0, 100.0004)), reference(tied(100.0004, 100.0)))
    parity = found.checks[0]
    assert parity.passed
    assert (parity.figures["winners"], parity.figures["near_ties"]) == (23, 1)
    assert parity.notes[0].startswith("near tie row4: o1 here, o0 by SemIf; margin 0.0004")


def test_rows_without_a_reference_count_in_every_check_but_parity():
    found = run(theirs=reference(rows=ROWS[:6]))
    assert found.checks[0].figures["rows"] == 6
    assert found.checks[0].notes == ("6 of 24 rows have a reference.",)
    assert found.checks[3].figures["rows"] == 24


def test_a_sample_is_scored_again_and_all_rows_count_elsewhere():
    found = run(sample_rows=5)
    assert found.checks[1].figures["rows"] == found.checks[2].figures["rows"] == 5
    assert found.checks[0].figures["rows"] == found.checks[3].figures["rows"] == 24
    assert found.passed


def test_a_reference_of_other_rows_ends_it():
    with pytest.raises(EvidenceError, match="holds none of the rows"):
        run(theirs={"x": reference()["row0"]})


def test_answers_that_change_from_run_to_run_fail_the_noise_check():
    drift = itertools.count()

    def logits(kind, decision):
        return [value + 1e-7 * next(drift) for value in read_digits(kind, decision)]

    assert only_fails(run(ToldScorer(logits)), NAMES[1])


def test_a_scorer_that_does_not_read_descriptions_fails_the_control():
    def blind(_, decision):
        return [7.0 - place for place in range(len(decision.options))]

    labelled = [dataclasses.replace(row, answer="o0") for row in ROWS]  # so it is not at chance
    file = RowFile(tuple(labelled), (), "")
    found = examine(
        make_target(ToldScorer(blind)), file, reference(blind), Plan(runs=3, sample_rows=24)
    )
    assert only_fails(found, NAMES[2])
    assert found.checks[2].figures["agreeing"] == 24


def test_logits_that_stay_under_shuffling_fail_the_control_of_a_model_at_chance_too():
    def blind(_, decision):
        return [7.0 - place for place in range(len(decision.options))]

    found = run(ToldScorer(blind), reference(blind))
    assert found.chance is not None
    assert found.chance.at_chance
    assert only_fails(found, NAMES[2])


def test_a_model_at_chance_is_told_and_its_winners_are_not_judged_by_the_control():
    def by_letter(_, decision):
        own = read_digits(_, decision)
        return [300.0 + own[0], *own[1:]]

    found = run(ToldScorer(by_letter), reference(by_letter))
    assert found.chance is not None
    assert found.chance.at_chance
    assert "at chance" in found.sentences()[0]
    control = found.checks[2]
    assert control.figures["winners"] == 24
    assert control.passed
    assert "not judged" in control.notes[0]


def test_shared_answers_that_differ_fail_the_shared_check():
    assert only_fails(run(ToldScorer(shifted("shared", 0.5))), NAMES[3])


def test_answers_that_depend_on_their_company_are_measured_as_noise():
    """The same decision, alone and beside others, may differ by rounding: that is the floor."""
    scorer = ToldScorer()
    plain = scorer.shared

    def shared(request):
        outcome = plain(request)
        off = 0.0005 * (len(request.decisions) > 2)
        scores = tuple(
            dataclasses.replace(s, option_logits=tuple(x + off for x in s.option_logits))
            for s in outcome.scores
        )
        return dataclasses.replace(outcome, scores=scores)

    scorer.shared = shared
    found = run(scorer)
    assert found.noise.regrouped == pytest.approx(0.0005)
    assert found.passed


def test_out_of_memory_fails_the_memory_check_and_the_table_goes_on():
    scorer = ToldScorer()
    plain = scorer.shared

    def shared(request):
        if len(request.decisions) == 24 and str(request.state).startswith("Log"):
            raise OutOfMemory("The device ran out of memory.")
        return plain(request)

    scorer.shared = shared
    found = run(scorer)
    assert only_fails(found, NAMES[5])
    assert {cell.decisions for cell in found.cells if cell.failure} == {24}
    assert {cell.decisions for cell in found.cells if not cell.failure} == {1, 8}


def test_a_process_over_its_cap_fails_the_memory_check():
    target = dataclasses.replace(make_target(ToldScorer()), vram_cap_gib=0.1)
    assert only_fails(examine(target, FILE, reference(), Plan(runs=3)), NAMES[5])


def test_sharing_that_does_not_pay_fails_the_speed_check(monkeypatch):
    monkeypatch.setattr(speed, "_time_direct", lambda *args: 0.5)
    assert only_fails(run(), NAMES[4])


def test_a_bar_for_the_median_is_judged():
    assert run(max_p50_ms=1000).passed
    assert only_fails(run(max_p50_ms=999), NAMES[4])


def test_rows_without_labels_are_measured_and_nothing_is_said_of_chance():
    rows = tuple(dataclasses.replace(row, answer=None) for row in ROWS)
    target = make_target(ToldScorer())
    found = examine(target, RowFile(rows, (), ""), reference(), Plan(runs=3))
    assert found.chance is None
    assert "No row is labelled" in found.sentences()[0]


def test_a_report_is_compared_with_itself_and_nothing_has_moved(tmp_path):
    found = run()
    path = tmp_path / "folder" / "report.json"
    comparison.write_report(path, found)
    movements = comparison.compare_reports(comparison.read_report(path), found)
    assert {movement.verdict for movement in movements} <= {"the same", "noise"}


def test_what_moved_is_told_from_noise(tmp_path):
    path = tmp_path / "report.json"
    comparison.write_report(path, run())
    old = comparison.read_report(path)
    other = ToldScorer(
        shifted("direct", 0.0005), dataclasses.replace(ToldScorer().identity, revision="r2")
    )
    by_name = {m.name: m for m in comparison.compare_reports(old, run(other))}
    assert by_name["model revision"].verdict == "MOVED"
    assert by_name["largest logit gap, same rows"].verdict == "noise"
    far = {
        m.name: m for m in comparison.compare_reports(old, run(ToldScorer(shifted("direct", 9))))
    }
    assert far["largest logit gap, same rows"].verdict == "MOVED"
    assert far["1 parity with SemIf"].new == "fail"


@pytest.mark.parametrize("text", ["", "[]", '{"format": "another"}'])
def test_a_file_that_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(EvidenceError):
        comparison.read_report(path)


def test_the_page_is_whole_alone_and_escapes_what_came_from_outside():
    found = run()
    nasty = "<script>alert(1)</script>"
    model = dataclasses.replace(found.model, source=nasty)
    movements = (comparison.Movement(nasty, nasty, "1", "noise"),)
    page = render_page(dataclasses.replace(found, model=model, row_errors=(nasty,)), movements)
    assert "<script" not in page
    assert 'src="' not in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")
    for check in found.checks:
        assert check.name in page
    assert "6 of 6 checks pass" in page
