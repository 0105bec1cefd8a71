import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_hub import COMMIT, MODEL, FakeHub, repository, safetensors_bytes

from semif_bento.cli.snapshot import verify_snapshot


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub(repository()) as running:
        yield running


def environ(home: Path, endpoint: str, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SEMIF_", "HF_"))}
    ours = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "SEMIF_MODEL": MODEL}
    return {**kept, **ours, "SEMIF_REVISION": COMMIT, **more}


def run_command(
    home: Path, endpoint: str, *command: str, **more: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *command],
        env=environ(home, endpoint, **more),
        capture_output=True,
        text=True,
        timeout=60,
    )


def wait_until(holds: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pull(home: Path, endpoint: str, **env: str) -> subprocess.CompletedProcess:
    return run_command(home, endpoint, "-m", "semif_bento.cli.main", "pull", **env)


def snapshot(home: Path) -> Path:
    return home / "hub" / f"models--{MODEL.replace('/', '--')}" / "snapshots" / COMMIT


def test_pull_fetches_what_a_text_model_needs_and_nothing_else(
    hub: FakeHub, tmp_path: Path
) -> None:
    done = pull(tmp_path, hub.url)

    assert done.returncode == 0, done.stderr
    assert "verified 7 files" in done.stdout
    wanted = {name for name in hub.files if name not in ("README.md", "original/weights.pth")}
    assert {path.name for path in snapshot(tmp_path).iterdir()} == wanted


def test_what_was_pulled_is_found_by_the_engine_without_a_network(
    hub: FakeHub, tmp_path: Path
) -> None:
    assert pull(tmp_path, hub.url).returncode == 0
    code = (
        f"from semif_bento.engine.sources import locate\nprint(locate({MODEL!r}, {COMMIT!r}).path)"
    )

    found = run_command(tmp_path, "http://127.0.0.1:9", "-c", code, HF_HUB_OFFLINE="1")

    assert found.stdout.strip() == str(snapshot(tmp_path)), found.stderr


def test_a_second_pull_downloads_nothing(hub: FakeHub, tmp_path: Path) -> None:
    assert pull(tmp_path, hub.url).returncode == 0
    hub.bytes_sent.clear()

    assert pull(tmp_path, hub.url).returncode == 0
    assert hub.bytes_sent == {}


def test_a_broken_download_resumes_where_it_stopped(hub: FakeHub, tmp_path: Path) -> None:
    name = "model-1.safetensors"
    hub.cut_at[name] = 15_000_000  # the hub's client writes pieces of 10 MiB

    done = pull(tmp_path, hub.url)

    assert done.returncode == 0, done.stderr
    assert hub.bytes_sent[name] == 15_000_000 + len(hub.files[name]) - 10_485_760


def test_a_pull_that_was_killed_keeps_its_whole_files(hub: FakeHub, tmp_path: Path) -> None:
    hub.stall_at["model-1.safetensors"] = 15_000_000
    killed = subprocess.Popen(
        [sys.executable, "-m", "semif_bento.cli.main", "pull"],
        env=environ(tmp_path, hub.url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: (snapshot(tmp_path) / "model-2.safetensors").is_file())
        assert hub.stalled.wait(30)
    finally:
        killed.kill()
        killed.wait()
    hub.bytes_sent.pop("model-2.safetensors")

    done = pull(tmp_path, hub.url)

    assert done.returncode == 0, done.stderr
    assert "model-2.safetensors" not in hub.bytes_sent


def test_a_damaged_file_is_downloaded_again(hub: FakeHub, tmp_path: Path) -> None:
    assert pull(tmp_path, hub.url).returncode == 0
    damaged = (snapshot(tmp_path) / "model-2.safetensors").resolve()
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)

    done = pull(tmp_path, hub.url)

    assert done.returncode == 0, done.stderr
    assert "its hash is not the published one" in done.stdout
    assert (snapshot(tmp_path) / "model-2.safetensors").read_bytes() == hub.files[
        "model-2.safetensors"
    ]


def test_a_repository_that_lacks_a_shard_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    del hub.files["model-2.safetensors"]

    done = pull(tmp_path, hub.url)

    assert done.returncode == 1
    assert "model-2.safetensors: missing" in done.stderr


def test_no_network_is_one_clear_line(tmp_path: Path) -> None:
    # The hub's client waits 23 seconds between its tries, which a test need not.
    code = (
        "import sys, time\ntime.sleep = lambda seconds: None\n"
        "from semif_bento.cli.main import main\nsys.exit(main(['pull']))"
    )

    done = run_command(tmp_path, "http://127.0.0.1:9", "-c", code)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("semif-bento pull: ")
    assert "Is there a network?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_repository_that_the_hub_does_not_have_is_told(hub: FakeHub, tmp_path: Path) -> None:
    done = pull(tmp_path, hub.url, SEMIF_MODEL="acme/another-model")

    assert done.returncode == 1
    assert "The hub answered 404 for acme/another-model" in done.stderr


def test_offline_mode_is_named(tmp_path: Path) -> None:
    done = pull(tmp_path, "http://127.0.0.1:9", HF_HUB_OFFLINE="1")

    assert done.returncode == 1
    assert "HF_HUB_OFFLINE is set" in done.stderr


def test_a_model_on_this_disk_is_not_pulled(tmp_path: Path) -> None:
    done = pull(tmp_path, "http://127.0.0.1:9", SEMIF_MODEL=str(tmp_path))

    assert done.returncode == 1
    assert "only a hub id is pulled" in done.stderr


def with_nli(hub: FakeHub, folder: str = "nli") -> dict[str, str]:
    """Publish a checkpoint in a sub-folder; return the settings that name it."""
    names = ("config.json", "tokenizer.json", "tokenizer_config.json")
    hub.files |= {f"{folder}/{name}": b"{}" for name in names}
    hub.files[f"{folder}/model.safetensors"] = safetensors_bytes(b"n" * 1000)
    hub.files[f"{folder}/other/model.safetensors"] = safetensors_bytes(b"o" * 1000)
    return {
        "SEMIF_NLI_MODEL": MODEL,
        "SEMIF_NLI_REVISION": COMMIT,
        "SEMIF_NLI_SUBFOLDER": folder,
    }


NLI_FILES = {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


def test_the_nli_model_is_pulled_beside_the_letter_model(hub: FakeHub, tmp_path: Path) -> None:
    done = pull(tmp_path, hub.url, **with_nli(hub))

    assert done.returncode == 0, done.stderr
    assert "verified 7 files" in done.stdout
    assert "verified 4 files" in done.stdout
    assert {path.name for path in (snapshot(tmp_path) / "nli").iterdir()} == NLI_FILES
    assert (snapshot(tmp_path) / "model-1.safetensors").is_file()


def test_without_a_letter_model_the_nli_folder_alone_is_pulled(
    hub: FakeHub, tmp_path: Path
) -> None:
    settings = with_nli(hub) | {"SEMIF_MODEL": "none", "SEMIF_REVISION": ""}

    done = pull(tmp_path, hub.url, **settings)

    assert done.returncode == 0, done.stderr
    assert {path.name for path in snapshot(tmp_path).iterdir()} == {"nli"}
    assert {path.name for path in (snapshot(tmp_path) / "nli").iterdir()} == NLI_FILES


def test_a_damaged_file_in_the_nli_folder_is_downloaded_again(hub: FakeHub, tmp_path: Path) -> None:
    settings = with_nli(hub) | {"SEMIF_MODEL": "none", "SEMIF_REVISION": ""}
    assert pull(tmp_path, hub.url, **settings).returncode == 0
    damaged = (snapshot(tmp_path) / "nli" / "model.safetensors").resolve()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")

    done = pull(tmp_path, hub.url, **settings)

    assert done.returncode == 0, done.stderr
    assert "its hash is not the published one" in done.stdout
    assert damaged.read_bytes() == hub.files["nli/model.safetensors"]


def test_a_checkpoint_without_a_tokenizer_is_told_where_to_get_one(
    hub: FakeHub, tmp_path: Path
) -> None:
    settings = with_nli(hub) | {"SEMIF_MODEL": "none", "SEMIF_REVISION": ""}
    del hub.files["nli/tokenizer.json"]

    done = pull(tmp_path, hub.url, **settings)

    assert done.returncode == 1
    assert "tokenizer.json: missing" in done.stderr
    assert "semif-bento overlay" in done.stderr


@pytest.fixture
def model_directory(tmp_path: Path) -> Path:
    for name, content in repository().items():
        if "/" not in name:
            (tmp_path / name).write_bytes(content)
    return tmp_path


def faults(directory: Path) -> dict[str, str]:
    return {r.name: r.fault for r in verify_snapshot(directory) if r.fault}


def test_a_whole_directory_has_no_faults(model_directory: Path) -> None:
    assert faults(model_directory) == {}


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model-1.safetensors"])
def test_a_missing_file_is_named(model_directory: Path, name: str) -> None:
    (model_directory / name).unlink()

    assert faults(model_directory) == {name: "missing"}


def test_a_link_that_leads_nowhere_is_missing(model_directory: Path) -> None:
    (model_directory / "config.json").unlink()
    (model_directory / "config.json").symlink_to(model_directory / "blobs" / "gone")

    assert faults(model_directory) == {"config.json": "missing"}


def test_a_truncated_shard_is_told_by_its_header(model_directory: Path) -> None:
    whole = safetensors_bytes(b"a" * 1000)
    (model_directory / "model-1.safetensors").write_bytes(whole[:-1])

    (fault,) = faults(model_directory).values()
    assert fault == f"holds {len(whole) - 1} bytes, its header tells {len(whole)}"


@pytest.mark.parametrize("content", [b"", b"\xff" * 4, b"\x02" + b"\0" * 7 + b"[]"])
def test_a_file_that_is_no_safetensors_is_a_fault(model_directory: Path, content: bytes) -> None:
    (model_directory / "model-1.safetensors").write_bytes(content)

    assert list(faults(model_directory)) == ["model-1.safetensors"]


def test_an_index_that_is_no_json_is_a_fault(model_directory: Path) -> None:
    (model_directory / "model.safetensors.index.json").write_text("{")

    assert faults(model_directory)["model.safetensors.index.json"] == "not JSON"
