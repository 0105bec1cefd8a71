import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from semif_bento.bench.classify import measurement
from semif_bento.bench.classify import target as target_module
from semif_bento.bench.classify.inputs import FrozenInputs, write_inputs
from semif_bento.bench.classify.reference import Reference, write_reference
from semif_bento.bench.classify.target import Target
from semif_bento.cli import bench_classify
from semif_bento.cli.main import main
from semif_bento.engine.nli.run import Run


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # a run sets it for good
    for name in ("SEMIF_NLI_MODEL", "SEMIF_MODEL", "SEMIF_DEVICE", "SEMIF_NLI_DTYPE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def pairs_file(inputs: FrozenInputs, tmp_path: Path) -> str:
    write_inputs(tmp_path / "pairs.jsonl", inputs)
    return str(tmp_path / "pairs.jsonl")


@pytest.fixture
def opened(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs take the small checkpoint that is open already."""
    settings = SimpleNamespace(device="cpu")
    monkeypatch.setattr(bench_classify, "_settings", lambda *_: contextlib.nullcontext(settings))
    monkeypatch.setattr(target_module, "open_target", lambda *_, **__: target)


def bench(*arguments: str | Path) -> int:
    return main(["bench-classify", *map(str, arguments)])


def run_folder(directory: Path) -> dict:
    return json.loads((directory / "run.json").read_text())


def test_a_run_agrees_and_leaves_its_run_folder_and_a_second_one_takes_its_reference(
    pairs_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    assert bench("--inputs", pairs_file, "--out", out, "--control", "--batch", 4) == 0

    printed = capsys.readouterr().out
    assert "no card is watched" in printed
    assert "reference: 7 of 7 pairs" in printed
    assert "control, plain transformers in padded batches: labels 7/7" in printed
    assert printed.count("labels 7/7") == 13
    found = run_folder(out)
    assert (found["phase"], found["void"], found["faults"]) == ("done", None, [])
    assert len(found["completed"]) == 12
    passes = [json.loads(line) for line in (out / "passes.jsonl").read_text().splitlines()]
    assert [len(one["run"]["logits"]) for one in passes] == [7] * 12
    assert (out / "inputs.jsonl").read_text() == Path(pairs_file).read_text()

    again = tmp_path / "again"
    assert bench("--inputs", pairs_file, "--reference", out / "reference.json", "--out", again) == 0
    assert "made on cpu" in capsys.readouterr().out
    assert (again / "reference.json").read_text() == (out / "reference.json").read_text()


@pytest.mark.usefixtures("opened")
def test_a_reference_of_another_dtype_ends_the_run_before_any_pass(
    pairs_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], reference: Reference
) -> None:
    other = replace(reference, origin=replace(reference.origin, dtype="bfloat16"))
    write_reference(tmp_path / "reference.json", other)
    out = tmp_path / "out"

    given = ("--inputs", pairs_file, "--reference", tmp_path / "reference.json", "--out", out)
    assert bench(*given) == 1

    assert "another dtype: 'bfloat16', not 'float32'" in capsys.readouterr().err
    found = run_folder(out)
    assert (found["phase"], found["completed"]) == ("failed", [])
    assert "another dtype" in found["reason"]
    assert not (out / "reference.json").exists()


@pytest.mark.usefixtures("opened")
def test_inputs_are_written_and_nothing_is_measured(
    pairs_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("--inputs", pairs_file, "--write-inputs", tmp_path / "frozen.jsonl") == 0

    assert (tmp_path / "frozen.jsonl").read_text() == Path(pairs_file).read_text()
    assert "nothing was measured" in capsys.readouterr().out


def test_a_folder_that_holds_something_is_refused_before_a_model_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old").write_text("")
    monkeypatch.setattr(bench_classify, "_run", lambda *given: pytest.fail("it ran"))

    assert bench("--out", tmp_path) == 1
    assert "a run's folder must be new" in capsys.readouterr().err


@pytest.mark.usefixtures("opened")
def test_a_foreign_process_on_the_card_makes_the_run_void(
    pairs_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextlib.contextmanager
    def busy(settings: object) -> Iterator[object]:
        fault = "process 7 computed on the card too."
        yield SimpleNamespace(fault=lambda: fault, samples=9, longest_gap_s=0.5)

    monkeypatch.setattr(bench_classify, "_watch", busy)

    assert bench("--inputs", pairs_file, "--out", tmp_path / "out") == 1

    assert "void and says nothing: process 7" in capsys.readouterr().out
    assert run_folder(tmp_path / "out")["void"] == "process 7 computed on the card too."


@pytest.mark.usefixtures("opened")
def test_an_engine_that_reads_another_beginning_fails_the_run(
    pairs_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Run._after

    def wrong(self: Run, row: int, start: int) -> tuple[int, ...]:
        """Branches lose all of their suffix but its end; whole inputs stay right."""
        return right(self, row, start)[-2:] if start else right(self, row, start)

    monkeypatch.setattr(Run, "_after", wrong)

    assert bench("--inputs", pairs_file) == 1

    printed = capsys.readouterr().out
    assert "cold, warm-up: another" in printed
    assert "disabled, warm-up: another" not in printed


@pytest.mark.usefixtures("opened")
def test_a_missed_bar_ends_in_1_only_when_bars_are_asked_for(
    pairs_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measurement, "COLD_BAR", 1e9)

    assert bench("--inputs", pairs_file, "--bars") == 1
    assert "under the bar of 1e+09×" in capsys.readouterr().out


def test_profiles_without_a_folder_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "profiles.toml").write_text("[sweep]\nbatch = [8]\n")

    assert bench("--profiles", tmp_path / "profiles.toml") == 1
    assert "--profiles needs --out" in capsys.readouterr().err
