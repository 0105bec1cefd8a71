"""The two commands as a user runs them: on a small real model in process, and on a service."""

import json
from pathlib import Path

import pytest
from stub import TOKEN

from semif_bento.calibration import load_calibration
from semif_bento.cli import target
from semif_bento.cli.main import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from models.byte_qwen import build_byte_qwen
    from models.loaded import save

    return save(build_byte_qwen(), tmp_path_factory.mktemp("model"))


@pytest.fixture
def in_process(model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    settings = {
        "SEMIF_MODEL": str(model),
        "SEMIF_REVISION": "r1",
        "SEMIF_DEVICE": "cpu",
        "SEMIF_DTYPE": "float32",
        "SEMIF_MAX_TOKENS": "2048",
        "SEMIF_MAX_DECISIONS": "8",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def token(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMIF_API_TOKEN", TOKEN)


def write_rows(path, count, answer=lambda n: f"o{n % 2}"):
    rows = [
        {
            "id": f"r{n}",
            "state": f"state {n // 2}",
            "question": f"Which of {n}?",
            "options": [{"id": f"o{k}", "description": f"{n} has way {k}"} for k in range(2)],
            "answer": answer(n),
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_calibrate_on_a_real_model_writes_reports_and_a_table_or_says_why_not(
    in_process, tmp_path, capsys
):
    data = write_rows(tmp_path / "rows", 60)
    code = main(["calibrate", "--workload", "w", "--data", data, "--out", "out", "--force"])
    said = capsys.readouterr().out
    assert code == 0
    assert "out of fold" in said
    table = load_calibration(tmp_path / "out" / "calibration.json")
    fitted = table.provenances["w"]
    assert (fitted.model_revision, fitted.rows, fitted.dtype) == ("r1", 60, "float32")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["evaluation"]["temperature"] == table.temperatures["w"]
    assert (tmp_path / "out" / "reliability.png").read_bytes().startswith(b"\x89PNG")
    assert "| ECE, 15 bins |" in (tmp_path / "out" / "report.md").read_text()


def test_accept_on_a_real_model_agrees_with_semifs_scorer_and_repeats(in_process, tmp_path, capsys):
    rows = write_rows(tmp_path / "rows", 8)
    arguments = ["accept", "--rows", rows, "--out", "out", "--runs", "3"]
    main(arguments)
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["1 parity with SemIf"]["passed"], said
    assert checks["2 noise floor"]["passed"]
    assert checks["4 shared against direct"]["passed"]
    assert checks["6 memory"]["passed"]
    assert checks["6 memory"]["figures"]["longest_prompt_mib"] > 0
    assert 2000 <= checks["6 memory"]["figures"]["longest_prompt_tokens"] <= 2048
    assert checks["5 speed"]["figures"]["floor_s"] > 0
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    reference = (tmp_path / "out" / "reference.jsonl").read_bytes()

    given = ["--reference", "out/reference.jsonl", "--against", "out/report.json"]
    main(["accept", "--rows", rows, "--out", "again", "--runs", "3", *given])
    said = capsys.readouterr().out
    assert "against the earlier run" in said
    assert "largest logit gap, same rows" in said
    again = json.loads((tmp_path / "again" / "report.json").read_text())
    assert again["answers"] == report["answers"]
    assert (tmp_path / "out" / "reference.jsonl").read_bytes() == reference


def test_a_calibration_that_was_ended_goes_on_where_it_stopped(stub, token, tmp_path, capsys):
    data = write_rows(tmp_path / "rows", 60)
    arguments = ["calibrate", "--workload", "w", "--data", data, "--out", "out", "--url", stub.url]
    stub.changes_after = 1 + 20
    assert main(arguments) == 1
    assert "changed its model" in capsys.readouterr().err
    assert len((tmp_path / "out" / "rows.jsonl").read_text().splitlines()) == 20
    stub.changes_after, stub.asked = None, 0
    stub.model = stub.scorer.identity
    assert main([*arguments, "--force"]) == 0
    assert stub.asked == 1 + 40


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [(lambda n: "o0", "One class only"), (lambda n: f"o{n % 2}", "Too few rows: 30")],
)
def test_a_fit_in_doubt_is_reported_and_not_written_unless_forced(
    stub, token, tmp_path, capsys, answer, doubt
):
    count = 30 if "few" in doubt else 60
    data = write_rows(tmp_path / "rows", count, answer)
    arguments = ["calibrate", "--workload", "w", "--data", data, "--out", "out", "--url", stub.url]
    assert main(arguments) == 1
    said = capsys.readouterr().out
    assert doubt in said
    assert "No table was written" in said
    assert not (tmp_path / "out" / "calibration.json").exists()
    assert (tmp_path / "out" / "report.json").exists()
    assert main([*arguments, "--force"]) == 0
    assert (tmp_path / "out" / "calibration.json").exists()


def test_a_malformed_row_is_listed_and_the_rest_is_calibrated(stub, token, tmp_path, capsys):
    data = Path(write_rows(tmp_path / "rows", 60))
    data.write_text("{\n" + data.read_text())
    main(["calibrate", "--workload", "w", "--data", str(data), "--out", "out", "--url", stub.url])
    assert "left out: line 1: " in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "report.json").read_text())["rows"] == 60


def test_accept_through_a_service_says_what_it_cannot_know(stub, token, tmp_path, capsys):
    rows = write_rows(tmp_path / "rows", 12)
    reference = tmp_path / "reference.jsonl"
    lines = [
        stub.answer("/decide", {k: v for k, v in json.loads(line).items() if k != "answer"})
        for line in Path(rows).read_text().splitlines()
    ]
    reference.write_text("".join(json.dumps(line) + "\n" for line in lines))
    main(["accept", "--rows", rows, "--reference", str(reference), "--url", stub.url])
    report = json.loads((tmp_path / "acceptance" / "report.json").read_text())
    checks = {check["name"]: check for check in report["checks"]}
    assert checks["1 parity with SemIf"]["passed"]
    assert "not known through a service" in " ".join(checks["5 speed"]["notes"])
    assert "Through a service only" in checks["6 memory"]["notes"][0]
    assert report["place"] == stub.url


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--url", "URL"], "Through a service a reference is needed"),
        (["--rows", "none.jsonl"], "none.jsonl cannot be read"),
        (["--against", "none.json"], "none.json cannot be read"),
        (["--url", "URL", "--reference", "bad.jsonl"], "bad.jsonl line 1 is not a result of SemIf"),
        (["--url", "URL", "--token-file", "none"], "none cannot be read"),
    ],
)
def test_what_accept_cannot_begin_with_ends_it_with_one_line(
    stub, token, tmp_path, capsys, arguments, sentence
):
    (tmp_path / "bad.jsonl").write_text('{"id": "x"}\n')
    if "none" in arguments:
        (tmp_path / "bad.jsonl").write_text("")
        arguments = [*arguments, "--reference", "bad.jsonl"]
    code = main(["accept", *(stub.url if a == "URL" else a for a in arguments)])
    assert code == 1
    [line] = [x for x in capsys.readouterr().err.splitlines() if x.startswith("semif-bento")]
    assert sentence in line
    assert stub.scorer.calls in ([], ["direct"])  # the probe at most


def test_a_service_without_a_token_is_not_asked(stub, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMIF_API_TOKEN", raising=False)
    assert main(["calibrate", "--workload", "w", "--url", stub.url]) == 1
    assert "--url needs a token" in capsys.readouterr().err
    assert stub.asked == 0


def test_a_wrong_token_ends_it_with_one_line(stub, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMIF_API_TOKEN", "x" * 40)
    assert main(["calibrate", "--workload", "w", "--url", stub.url]) == 1
    assert capsys.readouterr().err.endswith("refuses the token.\n")


def test_a_package_that_is_missing_is_named_before_anything_begins(monkeypatch, capsys):
    monkeypatch.setattr(target, "PACKAGES", ("numpy", "no_such_package"))
    assert main(["calibrate", "--workload", "w"]) == 1
    assert (
        "no_such_package not installed; the dependency group `evidence`" in capsys.readouterr().err
    )


@pytest.mark.parametrize("arguments", [["--workload", "a/b"], ["--workload", ""], []])
def test_a_workload_must_have_a_name_that_can_be_a_folder(arguments):
    with pytest.raises(SystemExit, match="2"):
        main(["calibrate", *arguments])


@pytest.mark.parametrize("runs", ["2", "x"])
def test_fewer_than_3_runs_are_no_measurement(runs):
    with pytest.raises(SystemExit, match="2"):
        main(["accept", "--runs", runs])
