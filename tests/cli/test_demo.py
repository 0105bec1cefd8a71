from pathlib import Path

from commands import run

from semif_bento.cli.sample import DECISION, SHARED


def test_the_demo_decides_over_http_says_what_it_is_and_stops_its_server(tmp_path: Path) -> None:
    done = run(tmp_path, "demo")

    assert done.returncode == 0, done.stdout + done.stderr
    for word in (
        "probability",
        "logit",
        "tokens",
        "prompt sha256",
        "of 9 right",
        "by the engine likelihood",
    ):
        assert word in done.stdout
    for option in DECISION["options"]:
        assert option["id"] in done.stdout
    for decision in SHARED["decisions"]:
        assert decision["id"] in done.stdout
    assert done.stdout.rstrip().endswith("the server's exit code is 0.")


def test_a_demo_whose_server_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    missing = {"SEMIF_MODEL": str(tmp_path / "none.gguf"), "SEMIF_REVISION": "none"}

    done = run(tmp_path, "demo", **missing)

    assert done.returncode == 1
    assert "The end of the server's log:" in done.stderr
    assert "semif-bento cannot start: " in done.stderr
    assert done.stderr.splitlines()[-1].startswith("semif-bento demo: The service ended")
