"""`semif-bento evaluate` as a user runs it, and the three forms in which it tells its numbers."""

import json
import re

import pytest
from stub import TOKEN
from test_commands import write_rows

from semif_bento.cli.main import main
from semif_bento.engine.registry import KINDS


@pytest.fixture
def service(stub, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMIF_API_TOKEN", TOKEN)
    return ["evaluate", "--url", stub.url]


def cells_of_page(page):
    rows = re.findall(r"<tr>(<td>.*?)</tr>", page)
    return [re.findall(r"<td>(.*?)</td>", row) for row in rows]


def test_table_json_and_page_hold_the_same_numbers(service, tmp_path, capsys):
    data = write_rows(tmp_path / "rows", 12)
    assert main([*service, "--data", data, "--out", "out"]) == 0
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    assert [engine["engine"] for engine in report["engines"]] == ["letters", "nli"]
    expected = []
    for engine in report["engines"]:
        for found in engine["questions"]:
            low, high = found["interval"]
            expected.append(
                [
                    found["question"],
                    str(found["rows"]),
                    f"{found['accuracy']:.3f}",
                    f"{low:.3f} to {high:.3f}",
                    f"{found['majority']:.3f}",
                    f"{found['ece']:.3f}",
                    *(f"{found[name]['share']:.3f}" for name in ("reversed", "rotated")),
                    f"{found['coverage']:.3f}",
                    f"{found['seconds']:.3f}",
                ]
            )
    assert cells_of_page(page) == expected
    printed = [" ".join(line.split()) for line in said.splitlines()]
    for cells in expected:
        assert " ".join(cells) in printed
    assert page.count("<svg") == len(expected)
    assert report["row_errors"] == []


def test_a_bad_row_is_named_and_the_rest_is_evaluated(service, tmp_path, capsys):
    data = tmp_path / "rows"
    write_rows(data, 4)
    data.write_text("{\n" + data.read_text())
    assert main([*service, "--data", str(data), "--engine", "letters"]) == 0
    assert "left out: line 1: " in capsys.readouterr().out
    report = json.loads((tmp_path / "evaluation" / "report.json").read_text())
    assert report["engines"][0]["questions"][-1]["rows"] == 4
    assert report["row_errors"][0].startswith("line 1: ")
    assert "Rows that could not be read" in (tmp_path / "evaluation" / "report.html").read_text()


def test_a_run_of_the_command_that_was_ended_goes_on(service, stub, tmp_path, capsys):
    arguments = [*service, "--data", write_rows(tmp_path / "rows", 10), "--engine", "letters"]
    stub.changes_after = 1 + 6
    assert main(arguments) == 1
    assert "changed its model" in capsys.readouterr().err
    stub.changes_after, stub.asked, stub.model = None, 0, stub.scorer.identity
    assert main(arguments) == 0
    assert stub.asked == 1 + 20 - 6


def test_without_arguments_the_decisions_that_ship_with_it_are_asked(service, tmp_path):
    assert main([*service, "--engine", "letters", "--limit", "2"]) == 0
    report = json.loads((tmp_path / "evaluation" / "report.json").read_text())
    assert report["limit"] == 2
    names = [found["question"] for found in report["engines"][0]["questions"]]
    assert names[-1] == "all"
    assert all(found["rows"] <= 2 for found in report["engines"][0]["questions"][:-1])


def test_typed_questions_ship_with_it_too(service, tmp_path):
    assert main([*service, "--typed", "--engine", "letters", "--limit", "3"]) == 0
    report = json.loads((tmp_path / "evaluation" / "report.json").read_text())
    names = [found["question"] for found in report["engines"][0]["questions"]]
    assert sorted(names) == ["all", "choice", "levels", "yes_no"]


def test_an_engine_that_joins_the_list_is_evaluated_in_process(monkeypatch, tmp_path):
    from models.echo.kind import ECHO

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(KINDS, "echo", ECHO)
    monkeypatch.delenv("SEMIF_MODEL", raising=False)
    row = {"id": "a", "state": "blue blue red", "kind": "choice", "question": "Which colour?"}
    options = [{"id": name, "description": ""} for name in ("red", "blue", "green")]
    line = json.dumps({**row, "options": options, "answer": "blue"})
    (tmp_path / "rows").write_text(line + "\n")
    assert main(["evaluate", "--data", "rows", "--engine", "echo"]) == 0
    [engine] = json.loads((tmp_path / "evaluation" / "report.json").read_text())["engines"]
    [found] = engine["questions"]
    assert (engine["engine"], engine["prompt_version"]) == ("echo", "echo-v1")
    assert (found["question"], found["right"], found["reversed"]["changed"]) == ("choice", 1, 0)
    assert len((tmp_path / "evaluation" / "rows-echo.jsonl").read_text().splitlines()) == 3


def test_an_engine_that_the_service_lacks_is_said(service, stub, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("stub.LIMITS", {"max_tokens": 1, "engines": ["letters"]})
    assert main([*service, "--engine", "letters", "--engine", "nli"]) == 1
    assert "--engine nli: The NLI engine is not loaded here" in capsys.readouterr().err
    assert stub.asked == 0


def test_an_engine_that_the_settings_lack_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMIF_NLI_MODEL", raising=False)
    assert main(["evaluate", "--engine", "letters", "--engine", "nli"]) == 1
    assert "--engine nli: The NLI engine is not loaded here" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "0"],
        ["--engine", "magic"],
        ["--typed", "--sys1bench"],
        ["--data", "x", "--typed"],
    ],
)
def test_wrong_usage_is_refused(arguments):
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", *arguments])


def test_a_file_that_is_not_there_is_said_before_anything_is_asked(service, stub, capsys):
    assert main([*service, "--data", "none.jsonl"]) == 1
    assert "none.jsonl cannot be read" in capsys.readouterr().err
    assert stub.asked == 0


def test_what_a_page_shows_of_others_is_escaped(service, tmp_path):
    data = tmp_path / "rows"
    write_rows(data, 2)
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    for row in rows:
        row["tags"] = {"question": "<b>bold</b>"}
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main([*service, "--data", str(data), "--engine", "letters"]) == 0
    page = (tmp_path / "evaluation" / "report.html").read_text()
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>bold</b>" not in page
