"""A GGUF file is converted once, whole or not at all, whoever is killed or comes along."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from models.rows import request_of, row_about
from models.scorers import settings_for
from models.tiny_gguf import write_tiny_gguf
from transformers import AutoModelForCausalLM

from semif_bento.engine import gguf
from semif_bento.engine.gguf import converted_directory
from semif_bento.engine.loading import load_model
from semif_bento.engine.startup import open_scorer
from semif_bento.errors import StartupError

CONVERT = """
import sys
from pathlib import Path
from semif_bento.engine.gguf import converted_directory
print(converted_directory(Path(sys.argv[1]), "float32", Path(sys.argv[2])))
"""
CONVERT_AND_STOP_BEFORE_PUBLISHING = (
    "import os, time; os.rename = lambda *paths: time.sleep(600)\n" + CONVERT
)


@pytest.fixture
def file(tmp_path):
    return write_tiny_gguf(tmp_path / "tiny.gguf")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def convert(file, cache):
    """Convert in a process of its own; what is still running at the end is killed."""
    started = []

    def start(script=CONVERT):
        command = [sys.executable, "-c", script, str(file), str(cache)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _copies(cache):
    return sorted(path.name for path in cache.glob("gguf-*"))


def _wait_for(cache, pattern, limit_s=120):
    ends_s = time.monotonic() + limit_s
    while not list(cache.glob(pattern)):
        assert time.monotonic() < ends_s
        time.sleep(0.002)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_copy_holds_the_very_weights_of_the_file(file, cache, dtype):
    directory = converted_directory(file, dtype, cache)
    found = load_model(directory, dtype, "cpu").state_dict()
    where = {"gguf_file": file.name, "dtype": getattr(torch, dtype)}
    native = AutoModelForCausalLM.from_pretrained(file.parent, **where).state_dict()
    assert found.keys() == native.keys()
    assert all(torch.equal(found[name], native[name]) for name in native)


def test_a_gguf_file_starts_and_scores(file, cache, no_network):
    settings = settings_for("float32", model=str(file), revision="v1", cache_dir=cache)
    request = request_of([row_about("state")])
    scores = open_scorer(settings).direct(request).scores
    assert open_scorer(settings).direct(request).scores == scores


def test_a_converted_file_is_not_converted_again(file, cache, monkeypatch):
    first = converted_directory(file, "float32", cache)
    monkeypatch.setattr(gguf, "_convert", None)
    assert converted_directory(file, "float32", cache) == first


def test_smollm2_reloads_without_converting(smollm2, monkeypatch):
    smollm2("float32")
    monkeypatch.setattr(gguf, "_convert", None)
    smollm2.__wrapped__("float32")


def test_another_dtype_and_another_file_have_copies_of_their_own(file, cache, tmp_path):
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1)
    directories = {
        converted_directory(file, "float32", cache),
        converted_directory(file, "bfloat16", cache),
        converted_directory(other, "float32", cache),
    }
    assert len(directories) == 3
    same = tmp_path / "renamed.gguf"
    same.write_bytes(file.read_bytes())
    assert converted_directory(same, "float32", cache) in directories


@pytest.mark.platform
@pytest.mark.parametrize(
    ("script", "sign"),
    [
        (CONVERT, ".converting-*"),
        (CONVERT, ".converting-*/model/config.json"),
        (CONVERT_AND_STOP_BEFORE_PUBLISHING, ".converting-*/model/tokenizer_config.json"),
    ],
    ids=["at its start", "while writing", "just before it is published"],
)
def test_a_killed_conversion_leaves_nothing_to_load_and_the_next_start_converts(
    convert, file, cache, script, sign
):
    killed = convert(script)
    _wait_for(cache, sign)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert _copies(cache) == []
    directory = converted_directory(file, "float32", cache)
    assert _copies(cache) == [directory.name]
    load_model(directory, "float32", "cpu")


@pytest.mark.platform
def test_two_processes_that_convert_at_once_end_with_one_whole_copy(convert, file, cache):
    both = [convert(), convert()]
    answers = [process.communicate(timeout=180)[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert answers[0] == answers[1]
    assert [path.name for path in cache.iterdir()] == _copies(cache)
    assert len(_copies(cache)) == 1
    load_model(converted_directory(file, "float32", cache), "float32", "cpu")


def test_the_process_that_comes_second_takes_the_copy_of_the_first(file, cache, monkeypatch):
    """The other one publishes while this one converts."""
    original = gguf._convert

    def overtaken(*args):
        original(*args)
        monkeypatch.setattr(gguf, "_convert", original)
        converted_directory(file, "float32", cache)

    monkeypatch.setattr(gguf, "_convert", overtaken)
    directory = converted_directory(file, "float32", cache)
    assert [path.name for path in cache.iterdir()] == [directory.name]


def test_a_gguf_file_that_lacks_a_weight_is_refused_and_leaves_no_copy(tmp_path, cache):
    """transformers would make up a random one, and the copy would look whole ever after."""
    file = write_tiny_gguf(tmp_path / "lacks.gguf", without="blk.1.ffn_up.weight")
    for _ in range(2):
        with pytest.raises(StartupError, match=r"^The checkpoint did not load whole: 1 missing"):
            converted_directory(file, "float32", cache)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("kept", [0, 3, 20, 5000, -1000], ids=lambda kept: f"{kept} bytes")
def test_a_cut_gguf_file_is_refused_in_one_line_and_leaves_no_copy(file, cache, kept):
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(StartupError, match=r"^The GGUF file cannot be loaded: .*$"):
        converted_directory(file, "float32", cache)
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_refused(file, cache):
    cache.write_text("a file where the directory should be")
    with pytest.raises(StartupError, match=r"^SEMIF_CACHE_DIR cannot be written: "):
        converted_directory(file, "float32", cache)


def test_what_a_killed_conversion_left_is_removed_a_day_later(file, cache):
    cache.mkdir()
    old, new = cache / ".converting-old", cache / ".converting-new"
    for scratch in (old, new):
        scratch.mkdir()
        (scratch / "model.safetensors").write_bytes(b"half")
    os.utime(old, (time.time() - 25 * 3600,) * 2)
    converted_directory(file, "float32", cache)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_copy_is_as_readable_as_its_folder(file, cache):
    copy = converted_directory(file, "float32", cache)
    modes = {path.stat().st_mode & 0o777 for path in copy.iterdir()}
    assert modes == {copy.stat().st_mode & 0o666}
