import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from commands import run
from fake_hub import safetensors_bytes

BASE, COMMIT = "acme/base-model", "0123456789abcdef0123456789abcdef01234567"
BASE_FILES = {
    "config.json": b'{"of": "the base"}',
    "model.safetensors": safetensors_bytes(b"b" * 10),
    "tokenizer.json": b'{"of": "the base", "version": "1.0"}',
    "tokenizer_config.json": b'{"of": "the base"}',
    "merges.txt": b"a b",
    "chat_template.jinja": b"{{ messages }}",
    "preprocessor_config.json": b"{}",
    "README.md": b"nobody's configuration",
}


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A hub cache that holds the base: blobs by their hash, and a snapshot that links to them."""
    repository = tmp_path / "home" / "hub" / f"models--{BASE.replace('/', '--')}"
    blobs, snapshot = repository / "blobs", repository / "snapshots" / COMMIT
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name, content in BASE_FILES.items():
        is_large = name in ("model.safetensors", "tokenizer.json")
        digest = hashlib.sha256(content).hexdigest() if is_large else git_hash(content)
        (blobs / digest).write_bytes(content)
        (snapshot / name).symlink_to(Path("../../blobs") / digest)
    return snapshot


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    made = tmp_path / "checkpoint"
    (made / "optimizer").mkdir(parents=True)
    (made / "config.json").write_bytes(b'{"of": "the checkpoint"}')
    (made / "model.safetensors").write_bytes(safetensors_bytes(b"c" * 10))
    (made / "tokenizer_config.json").write_bytes(b'{"of": "the checkpoint"}')
    return made


def overlay(
    tmp_path: Path, checkpoint: Path | str, *more: str, **environ: str
) -> "subprocess.CompletedProcess[str]":
    given = ("--base", BASE, "--base-revision", COMMIT, *more)
    home = {"HF_HOME": str(tmp_path / "home")} | environ
    return run(tmp_path, "overlay", str(checkpoint), str(tmp_path / "made"), *given, **home)


def test_a_checkpoint_keeps_its_own_files_and_takes_what_it_lacks(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 0, done.stderr
    made = {path.name: path for path in (tmp_path / "made").iterdir()}
    assert all(path.is_symlink() for path in made.values())
    own = {path.name for path in checkpoint.iterdir() if path.is_file()}
    taken = {"tokenizer.json", "merges.txt", "chat_template.jinja", "preprocessor_config.json"}
    assert set(made) == own | taken
    for name in own:
        assert made[name].read_bytes() == (checkpoint / name).read_bytes()
    for name in taken:
        assert made[name].read_bytes() == BASE_FILES[name]
        assert f"{name}: {BASE} at {COMMIT}" in done.stdout


def test_a_relative_checkpoint_and_a_cached_one_are_linked_to_the_files_themselves(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    (checkpoint / "vocab.json").symlink_to("../vocabulary")
    (tmp_path / "vocabulary").write_text("{}")

    done = overlay(tmp_path, os.path.relpath(checkpoint))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "config.json").read_bytes() == b'{"of": "the checkpoint"}'
    assert (tmp_path / "made" / "vocab.json").read_text() == "{}"


def test_an_empty_directory_will_do_and_a_used_one_is_refused(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    (tmp_path / "made").mkdir()
    assert overlay(tmp_path, checkpoint).returncode == 0
    before = sorted(path.name for path in (tmp_path / "made").iterdir())

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "must be new or empty" in done.stderr
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == before


def test_a_damaged_file_of_the_base_is_refused_and_no_directory_is_left(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    blob = (base / "tokenizer.json").resolve()
    blob.write_bytes(blob.read_bytes().replace(b"1.0", b"1.1"))

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "tokenizer.json" in done.stderr
    assert "its hash is not the published one" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_needed_file_that_the_base_lacks_is_named(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    (base / "tokenizer.json").unlink()

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert f"tokenizer.json of {BASE} at {COMMIT}: missing" in done.stderr
    assert not (tmp_path / "made").exists()


def test_an_optional_file_whose_link_leads_nowhere_is_a_fault_too(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    (base / "merges.txt").resolve().unlink()

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "merges.txt" in done.stderr


def test_a_file_whose_hash_nobody_claims_is_not_taken(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    (base / "tokenizer.json").unlink()
    (base / "tokenizer.json").write_bytes(BASE_FILES["tokenizer.json"])

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "its cache claims no hash for it" in done.stderr


def test_a_base_that_was_never_pulled_is_told_how_to_get(tmp_path: Path, checkpoint: Path) -> None:
    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "semif-bento pull" in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "more", [("--base-revision", "main"), ("--base", "../elsewhere/base"), ("--base", "base")]
)
def test_a_base_that_is_not_pinned_is_refused(
    tmp_path: Path, base: Path, checkpoint: Path, more: tuple[str, str]
) -> None:
    done = overlay(tmp_path, checkpoint, *more)

    assert done.returncode == 1
    assert "pinned to a 40-hex commit" in done.stderr


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_weights_and_configuration_are_the_checkpoints_or_it_is_none(
    tmp_path: Path, base: Path, checkpoint: Path, name: str
) -> None:
    (checkpoint / name).unlink()

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "is no checkpoint" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_truncated_shard_of_the_checkpoint_is_refused(
    tmp_path: Path, base: Path, checkpoint: Path
) -> None:
    shard = checkpoint / "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])

    done = overlay(tmp_path, checkpoint)

    assert done.returncode == 1
    assert "its header tells" in done.stderr
    assert not (tmp_path / "made").exists()
