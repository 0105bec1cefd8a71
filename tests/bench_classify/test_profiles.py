import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from semif_bento.bench.classify import sweep
from semif_bento.bench.classify.sweep import Outcome, Profile, rank, read_profiles, run_profiles
from semif_bento.errors import StartupError

# A benchmark that measures nothing: it leaves what a real one would, as its settings tell.
STAND_IN = """
import json, os, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out = pathlib.Path(given["--out"])
out.mkdir()
noted = {name: value for name, value in os.environ.items() if name.startswith("SEMIF_")}
(out / "given.json").write_text(json.dumps({"arguments": given, "environ": noted}))
(out / "inputs.jsonl").write_text("{}")
(out / "reference.json").write_text("{}")
if noted.get("SEMIF_PREFIX_CACHE_MIB") == "1":
    sys.exit(137)
cold = float(noted.get("SEMIF_BRANCH_BUDGET_MIB", 100)) / 100
facts = {"phase": "done", "void": None, "faults": [], "completed": [], "cold_ratio": 2.0,
         "warm_ratio": 9.0, "states": {s: {"median_s": cold} for s in ("disabled", "cold", "warm")}}
if noted.get("SEMIF_BRANCH_BUDGET_MIB") == "50":
    facts["void"] = "process 7 computed on the card too."
if given["--batch"] == "8":
    facts["faults"] = ["cold, pass 1: another label for a."]
(out / "run.json").write_text(json.dumps(facts))
sys.exit(1 if facts["void"] or facts["faults"] else 0)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    monkeypatch.setattr(sweep, "COMMAND", (sys.executable, str(script)))
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def run(
    directory: Path, profiles: list[Profile], environ: Mapping[str, str] | None = None, **more: Any
) -> list[Outcome]:
    return run_profiles(
        profiles,
        directory,
        environ or {},
        ["--passes", "3"],
        more.pop("inputs", None),
        32,
        lambda profile: None,
        lambda outcome: None,
        **more,
    )


def given(directory: Path, name: str) -> dict[str, dict[str, str]]:
    return json.loads((directory / name / "given.json").read_text())


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "profiles.toml").write_text(text)
    return tmp_path / "profiles.toml"


def test_one_setting_at_a_time_after_the_baseline(tmp_path: Path) -> None:
    path = write(tmp_path, "[sweep]\nprefix_cache_mib = [0, 64]\nbranch_attention = ['views']\n")

    assert [profile.name for profile in read_profiles(path)] == [
        "baseline",
        "prefix_cache_mib=0",
        "prefix_cache_mib=64",
        "branch_attention=views",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sweep", "cannot be read as TOML"),
        ("", "must hold one table"),
        ("[sweep]\n", "must hold one table"),
        ("[other]\nbatch = [1]\n", "must hold one table"),
        ("[sweep]\nnli_model = ['acme/other']\n", "nli_model is not swept"),
        ("[sweep]\nbatch = 8\n", "batch must be a list"),
        ("[sweep]\nbatch = [0]\n", "batch must be a number from 1"),
        ("[sweep]\nbatch = [8, 8]\n", "the same profile twice"),
        ("[sweep]\nnli_dtype = ['int8']\n", "SEMIF_NLI_DTYPE must be"),
        ("[sweep]\nbranch_budget_mib = [1]\n", "SEMIF_BRANCH_BUDGET_MIB must be from 16"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_anything_runs(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(StartupError, match=message):
        read_profiles(write(tmp_path, text))


def test_each_profile_changes_its_setting_and_nothing_else(stand_in: Path) -> None:
    environ = {"SEMIF_NLI_MODEL": "m", "SEMIF_PREFIX_CACHE_MIB": "256"}
    profiles = [
        Profile("baseline"),
        Profile("prefix_cache_mib=0", "prefix_cache_mib", "0"),
        Profile("batch=64", "batch", "64"),
    ]

    run(stand_in, profiles, environ)

    base, cache, batch = (
        given(stand_in, name) for name in ("00-baseline", "01-prefix_cache_mib=0", "02-batch=64")
    )
    assert base["environ"] == batch["environ"] == environ
    assert cache["environ"] == environ | {"SEMIF_PREFIX_CACHE_MIB": "0"}
    assert [one["arguments"]["--batch"] for one in (base, cache, batch)] == ["32", "32", "64"]


def test_all_take_the_baselines_pairs_and_the_reference_of_their_own_dtype(stand_in: Path) -> None:
    profiles = [
        Profile("baseline"),
        Profile("prefix_cache_mib=0", "prefix_cache_mib", "0"),
        Profile("nli_dtype=float32", "nli_dtype", "float32"),
        Profile("batch=64", "batch", "64"),
    ]

    run(stand_in, profiles, inputs=Path("mine.jsonl"))

    names = [f"{number:02}-{profile.name}" for number, profile in enumerate(profiles)]
    base, cache, dtype, batch = (given(stand_in, name)["arguments"] for name in names)
    assert base["--inputs"] == "mine.jsonl"
    assert "--reference" not in base
    assert "--reference" not in dtype
    for arguments in (cache, dtype, batch):
        assert arguments["--inputs"] == str(stand_in / "00-baseline" / "inputs.jsonl")
    for arguments in (cache, batch):
        assert arguments["--reference"] == str(stand_in / "00-baseline" / "reference.json")


def test_void_failing_and_killed_runs_are_listed_and_never_ranked(stand_in: Path) -> None:
    profiles = [
        Profile("baseline"),
        Profile("branch_budget_mib=50", "branch_budget_mib", "50"),  # fastest, and void
        Profile("branch_budget_mib=90", "branch_budget_mib", "90"),
        Profile("batch=8", "batch", "8"),
        Profile("prefix_cache_mib=1", "prefix_cache_mib", "1"),
    ]

    ranked, unranked = rank(run(stand_in, profiles))

    assert [one.profile.name for one in ranked] == ["branch_budget_mib=90", "baseline"]
    assert [one.reason for one in unranked] == [
        "void: process 7 computed on the card too.",
        "failed: cold, pass 1: another label for a.",
        "it left no run.json (exit code 137); see its log.",
    ]


def test_a_baseline_that_does_not_start_ends_the_sweep(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "COMMAND", (sys.executable, "-c", "raise SystemExit(1)"))

    with pytest.raises(StartupError, match="The baseline did not start"):
        run(stand_in, [Profile("baseline"), Profile("batch=8", "batch", "8")])
    assert not list(stand_in.glob("01-*"))
