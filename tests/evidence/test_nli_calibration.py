"""`calibrate --engine nli`: temperatures of log e, in a table that only the NLI engine takes."""

import contextlib
import io
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from samples import MODEL, ToldScorer, make_row, make_scored
from test_commands import write_rows

from semif_bento.calibration import load_calibration
from semif_bento.cli.main import main
from semif_bento.decisions import EngineStatus
from semif_bento.engine.nli.engine import EntailmentEngine
from semif_bento.engine.registry import NLI
from semif_bento.entailment import (
    PAIR_TEMPLATE,
    ClassifyOutcome,
    ClassifyTiming,
    Pair,
    PairLogits,
    decision_sha256,
    render_hypothesis,
)
from semif_bento.errors import StartupError
from semif_bento.evidence import fitting
from semif_bento.evidence.journal import Journal
from semif_bento.evidence.scoring import score_rows
from semif_bento.evidence.temperature import fit_temperature

VERSION = "nli-hyp-v1/nli-pair-v1"


class ToldClassifier:
    """Answers each hypothesis with the entailment that stands at its end."""

    identity = MODEL
    template = PAIR_TEMPLATE
    serving_config = "told"

    def __init__(self) -> None:
        self.asked: list[Pair] = []

    def classify(self, inputs: Sequence[Pair], caller: object = None) -> ClassifyOutcome:
        self.asked += inputs
        entailed = [float(pair.hypothesis.split()[-1]) for pair in inputs]
        logits = [(math.log((1 - e) / 2), math.log(e), math.log((1 - e) / 2)) for e in entailed]
        return ClassifyOutcome(
            tuple(PairLogits(triple, 7, "") for triple in logits),
            ClassifyTiming(0.5, 0.1, 0.125, 0.25, 14, 5, 0, 9, 9, 1),
        )

    def status(self) -> EngineStatus:
        raise NotImplementedError


def rows_at(temperature: float) -> list:
    """Rows whose labels fall as softmax(log e / temperature) says they do."""
    rows = []
    for shares in ((3, 1), (4, 1), (1, 2), (2, 1, 1), (5, 2, 1), (1, 1, 6)):
        entailed = [0.001 * share**temperature for share in shares]
        for place, share in enumerate(shares):
            for _ in range(share * 3):
                row = make_row(len(rows), len(shares), place)
                options = tuple(
                    type(option)(option.id, repr(e))
                    for option, e in zip(row.decision.options, entailed, strict=True)
                )
                decision = type(row.decision)(row.decision.id, row.decision.question, options)
                rows.append(make_row(len(rows), len(shares), place, decision=decision))
    return rows


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_divides_the_logs_of_entailment(temperature):
    scored = score_rows(EntailmentEngine(ToldClassifier(), 99), rows_at(temperature), "test")
    assert fit_temperature(fitting.to_answers(scored)) == pytest.approx(temperature, rel=1e-3)


def test_a_row_is_asked_as_a_decision_of_the_service_is():
    classifier = ToldClassifier()
    row = rows_at(1.0)[0]
    outcome = EntailmentEngine(classifier, 99).direct(row.request())
    expected = [
        Pair(row.state, render_hypothesis(row.decision.question, option.id, option.description))
        for option in row.decision.options
    ]
    assert classifier.asked == expected
    assert outcome.scores.prompt_sha256 == decision_sha256(PAIR_TEMPLATE, expected)
    assert outcome.scores.probabilities == pytest.approx((0.75, 0.25))
    assert outcome.scores.option_logits == pytest.approx((math.log(0.003), math.log(0.001)))
    assert outcome.scores.input_tokens == 14
    assert (outcome.forward_seconds, outcome.total_seconds) == (0.375, 0.5)


def test_one_place_is_a_doubt_of_the_letter_engine_alone():
    rows = [make_row(index, answer=0) for index in range(60)]
    scored = make_scored(rows, [(0.0, 1.0)] * 60)
    answers = fitting.to_answers(scored)
    place = "One place only"
    assert any(doubt.startswith(place) for doubt in fitting.find_doubts(scored, answers))
    doubts = fitting.find_doubts(scored, answers, NLI)
    assert not any(doubt.startswith(place) for doubt in doubts)
    assert any(doubt.startswith("One class only") for doubt in doubts)


def test_a_journal_finds_no_answer_to_another_prompt(tmp_path):
    row, scorer = make_row(0), ToldScorer()
    for version in (VERSION, "nli-hyp-v1/other", VERSION):
        with Journal(tmp_path / "rows.jsonl", MODEL, version) as journal:
            score_rows(scorer, [row], "test", journal)
    with Journal(tmp_path / "rows.jsonl", MODEL) as journal:
        assert journal.get(row) is None
    assert len(scorer.calls) == 2


@pytest.fixture(scope="module")
def nli_settings() -> dict[str, str]:
    from models.nli import shared_nli_model

    return {
        "SEMIF_NLI_MODEL": str(shared_nli_model()),
        "SEMIF_NLI_REVISION": "r1",
        "SEMIF_NLI_DTYPE": "float32",
        "SEMIF_DEVICE": "cpu",
        "SEMIF_MAX_TOKENS": "512",
    }


def set_all(monkeypatch, tmp_path, settings):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMIF_MODEL", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


CALIBRATE = ["calibrate", "--engine", "nli", "--data", "rows", "--force"]


@pytest.fixture(scope="module")
def calibrated(nli_settings, tmp_path_factory):
    """A folder in which the workload `w` was calibrated once, and what that said."""
    folder, said = tmp_path_factory.mktemp("calibrated"), io.StringIO()
    write_rows(folder / "rows", 60)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        set_all(patch, folder, nli_settings)
        assert main([*CALIBRATE, "--workload", "w"]) == 0
    return folder, said.getvalue()


def test_calibrate_on_a_real_model_writes_a_table_that_the_nli_engine_takes(
    nli_settings, calibrated
):
    folder, said = calibrated
    assert "SEMIF_NLI_CALIBRATION reads it" in said
    out = folder / "calibration-nli-w"
    table = load_calibration(out / "calibration.json", NLI.binding)
    fitted = table.provenances["w"]
    assert (fitted.engine, fitted.prompt_version) == ("nli", "nli-hyp-v1")
    assert (fitted.model_source, fitted.model_revision) == (nli_settings["SEMIF_NLI_MODEL"], "r1")
    assert (fitted.dtype, fitted.rows) == ("float32", 60)
    table.require_model(nli_settings["SEMIF_NLI_MODEL"], "r1")
    with pytest.raises(StartupError, match="SEMIF_CALIBRATION: 'w' was fitted for engine 'nli'"):
        load_calibration(out / "calibration.json")
    report = json.loads((out / "report.json").read_text())
    assert (report["engine"], report["prompt_version"]) == ("nli", VERSION)
    assert "engine nli" in (out / "report.md").read_text()
    lines = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert {line["prompt_version"] for line in lines} == {VERSION}
    assert all(logit <= 0 for line in lines for logit in line["option_logits"])


def test_a_table_of_the_other_engine_is_left_as_it_was(
    nli_settings, calibrated, monkeypatch, tmp_path, capsys
):
    folder = shutil.copytree(calibrated[0], tmp_path / "copy")
    set_all(monkeypatch, folder, nli_settings)
    path = folder / "calibration-nli-w" / "calibration.json"
    table = json.loads(path.read_text())
    provenance = {**table["w"]["provenance"], "engine": "letter"}
    path.write_text(json.dumps({"w": {**table["w"], "provenance": provenance}}))
    before = path.read_bytes()
    assert main([*CALIBRATE, "--workload", "other", "--out", str(path.parent)]) == 1
    assert "cannot take the workload. SEMIF_NLI_CALIBRATION" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_without_an_nli_model_there_is_nothing_to_ask(monkeypatch, tmp_path, capsys):
    set_all(monkeypatch, tmp_path, {"SEMIF_DEVICE": "cpu"})
    monkeypatch.delenv("SEMIF_NLI_MODEL", raising=False)
    assert main(["calibrate", "--engine", "nli", "--workload", "w"]) == 1
    said = capsys.readouterr().err
    assert said.endswith(
        "--engine nli: The NLI engine is not loaded here; SEMIF_NLI_MODEL enables it.\n"
    )


def test_a_row_names_no_engine(monkeypatch, tmp_path, capsys, stub):
    set_all(monkeypatch, tmp_path, {"SEMIF_API_TOKEN": "t" * 40})
    data = tmp_path / "rows"
    line = json.loads(Path(write_rows(data, 1)).read_text())
    data.write_text(json.dumps({**line, "engine": "nli"}) + "\n")
    assert main(["calibrate", "--workload", "w", "--data", str(data), "--url", stub.url]) == 1
    assert "`engine` does not belong to a row" in capsys.readouterr().err
    assert stub.asked == 0
