"""Settings: read once, checked by name, never a token in a message."""

from dataclasses import fields

import pytest

from semif_bento.errors import StartupError
from semif_bento.settings import (
    DEFAULT_MODEL,
    DEFAULT_REVISION,
    Settings,
    is_hub_id,
    settings_table,
    variable,
)

TOKEN = "a1" * 16
REVISION = "0" * 40


def read(**environ: str) -> Settings:
    return Settings.from_env({"SEMIF_API_TOKEN": TOKEN, **environ})


def refusal(**environ: str) -> str:
    with pytest.raises(StartupError) as caught:
        read(**environ)
    assert TOKEN not in str(caught.value)
    return str(caught.value)


def test_a_token_alone_gives_the_defaults():
    settings = read()
    assert (settings.model, settings.revision) == (DEFAULT_MODEL, DEFAULT_REVISION)
    assert (settings.device, settings.dtype) == ("cuda", "bfloat16")
    assert (settings.max_tokens, settings.max_decisions) == (4096, 64)
    assert settings.max_body_bytes == 1 << 20


def test_other_variables_and_empty_values_count_as_not_set():
    assert read(SEMIFX="1", PATH="x", SEMIF_MAX_TOKENS="", SEMIF_MODEL=" ") == read()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "SEMIF_MAX_TOKEN",
            "1",
            "SEMIF_MAX_TOKEN is not a setting; did you mean SEMIF_MAX_TOKENS.",
        ),
        ("SEMIF_ZZZZZZZZ", "1", "SEMIF_ZZZZZZZZ is not a setting."),
        ("SEMIF_MAX_TOKENS", "63", "SEMIF_MAX_TOKENS must be from 64 to 262144, not 63."),
        ("SEMIF_MAX_TOKENS", "4k", "SEMIF_MAX_TOKENS must be a whole number from 64 to 262144."),
        ("SEMIF_MAX_TOKENS", "9" * 5000, "SEMIF_MAX_TOKENS must be a whole number"),
        ("SEMIF_MAX_WAITING", "-1", "SEMIF_MAX_WAITING must be from 0 to 10000, not -1."),
        ("SEMIF_TIMEOUT_S", "0", "SEMIF_TIMEOUT_S must be over 0 and up to 3600, not 0."),
        ("SEMIF_TIMEOUT_S", "nan", "SEMIF_TIMEOUT_S must be over 0 and up to 3600, not nan."),
        ("SEMIF_TIMEOUT_S", "soon", "SEMIF_TIMEOUT_S must be a number over 0 and up to 3600."),
        ("SEMIF_DEVICE", "CPU", "SEMIF_DEVICE must be one of cuda, cpu, not 'CPU'."),
        ("SEMIF_DTYPE", "int8", "SEMIF_DTYPE must be one of bfloat16, float16, float32"),
        ("SEMIF_CALIBRATION", "no/such", "SEMIF_CALIBRATION must name a readable file."),
        ("SEMIF_REVISION", "main", "SEMIF_REVISION must be the 40-hex commit"),
        ("SEMIF_MODEL", "some/model", "SEMIF_REVISION must be the 40-hex commit"),
        ("SEMIF_MODEL", "weights.gguf", "SEMIF_REVISION is required for a local SEMIF_MODEL"),
        ("SEMIF_MODEL", "none", "SEMIF_MODEL=none leaves nothing to serve; set SEMIF_NLI_MODEL."),
        ("SEMIF_MAX_PAIRS", "0", "SEMIF_MAX_PAIRS must be from 1 to 65536, not 0."),
        ("SEMIF_MAX_PAIRS", "65537", "SEMIF_MAX_PAIRS must be from 1 to 65536, not 65537."),
        ("SEMIF_MAX_PAIRS", "1.5", "SEMIF_MAX_PAIRS must be a whole number from 1 to 65536."),
        ("SEMIF_NLI_MODEL", "some/model", "SEMIF_NLI_REVISION must be the 40-hex commit of the"),
        ("SEMIF_NLI_MODEL", "checkpoint", "SEMIF_NLI_REVISION is required for a local SEMIF_NLI_"),
        (
            "SEMIF_NLI_MODELS",
            "x",
            "SEMIF_NLI_MODELS is not a setting; did you mean SEMIF_NLI_MODEL",
        ),
        ("SEMIF_NLI_DTYPE", "half", "SEMIF_NLI_DTYPE must be one of bfloat16, float16, float32"),
        ("SEMIF_NLI_CALIBRATION", "no/such", "SEMIF_NLI_CALIBRATION must name a readable file."),
        ("SEMIF_OPEN_DOCS", "no", "SEMIF_OPEN_DOCS must be true or false, not 'no'."),
        ("SEMIF_NLI_REVISION", "r1", "SEMIF_NLI_REVISION is set, SEMIF_NLI_MODEL is not."),
        ("SEMIF_NLI_SUBFOLDER", "a", "SEMIF_NLI_SUBFOLDER is set, SEMIF_NLI_MODEL is not."),
        ("SEMIF_NLI_SUBFOLDER", "../a", "SEMIF_NLI_SUBFOLDER must be a relative path"),
        ("SEMIF_NLI_SUBFOLDER", "/a", "SEMIF_NLI_SUBFOLDER must be a relative path"),
        ("SEMIF_NLI_SUBFOLDER", "a//b", "SEMIF_NLI_SUBFOLDER must be a relative path"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name, text, message):
    assert refusal(**{name: text}).startswith(message)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", "SEMIF_API_TOKEN or SEMIF_API_TOKEN_FILE is required."),
        ("x" * 31, "SEMIF_API_TOKEN must hold at least 32 characters."),
        ("é" * 32, "SEMIF_API_TOKEN must be printable ASCII without white space."),
        ("x" * 20 + " " + "x" * 20, "SEMIF_API_TOKEN must be printable ASCII"),
    ],
)
def test_a_token_that_cannot_guard_is_refused(token, message):
    assert refusal(SEMIF_API_TOKEN=token).startswith(message)


def test_the_token_can_come_from_a_file_but_not_from_both(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read(SEMIF_API_TOKEN="", SEMIF_API_TOKEN_FILE=str(file)).api_token == TOKEN
    assert "not both" in refusal(SEMIF_API_TOKEN_FILE=str(file))
    file.write_bytes(b"\xff" * 40)
    assert "cannot be read" in refusal(SEMIF_API_TOKEN="", SEMIF_API_TOKEN_FILE=str(file))


def test_the_token_is_not_in_the_settings_repr():
    assert TOKEN not in repr(read())


def test_the_docs_page_is_open_until_an_operator_closes_it():
    assert read().open_docs
    assert not read(SEMIF_OPEN_DOCS="false").open_docs


def test_a_vram_cap_needs_cuda():
    assert read(SEMIF_VRAM_CAP_GIB="12").vram_cap_gib == 12.0
    assert "needs SEMIF_DEVICE=cuda" in refusal(SEMIF_VRAM_CAP_GIB="12", SEMIF_DEVICE="cpu")


def test_a_source_is_a_hub_id_only_if_it_is_nothing_on_this_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_hub_id("org/model")
    (tmp_path / "org" / "model").mkdir(parents=True)
    for source in ("org/model", "org/model.gguf", "package:dist/file.gguf", "a/b/c", "model"):
        assert not is_hub_id(source)


def test_each_kind_of_source_takes_its_kind_of_revision():
    assert read(SEMIF_MODEL="some/model", SEMIF_REVISION=REVISION).revision == REVISION
    assert read(SEMIF_MODEL="weights.gguf", SEMIF_REVISION="mine").revision == "mine"
    assert read(SEMIF_MODEL="package:dist/file.gguf").revision is None


def test_without_an_nli_model_there_is_none():
    settings = read()
    assert settings.nli_model is None
    assert settings.has_causal_model
    assert (settings.nli_dtype, settings.max_pairs) == ("bfloat16", 1024)


def test_an_nli_model_takes_its_own_revision_folder_and_type(tmp_path):
    table = tmp_path / "table"
    table.touch()
    settings = read(
        SEMIF_NLI_MODEL="some/model",
        SEMIF_NLI_REVISION=REVISION,
        SEMIF_NLI_SUBFOLDER="a/b",
        SEMIF_NLI_DTYPE="float32",
        SEMIF_NLI_CALIBRATION=str(table),
        SEMIF_MAX_PAIRS="7",
    )
    assert (settings.nli_model, settings.nli_revision) == ("some/model", REVISION)
    assert (settings.nli_subfolder, settings.nli_dtype) == ("a/b", "float32")
    assert (settings.nli_calibration, settings.max_pairs) == (table, 7)
    assert (settings.model, settings.dtype) == (DEFAULT_MODEL, "bfloat16")


@pytest.mark.parametrize("model", ["package:dist/folder", "checkpoint"])
def test_an_nli_model_on_this_disk_takes_any_revision_and_a_package_none(model):
    assert read(SEMIF_NLI_MODEL=model, SEMIF_NLI_REVISION="mine").nli_revision == "mine"
    if model.startswith("package:"):
        assert read(SEMIF_NLI_MODEL=model).nli_revision is None


def test_none_leaves_the_letter_engine_out_and_needs_no_revision(tmp_path):
    nli = {"SEMIF_NLI_MODEL": "checkpoint", "SEMIF_NLI_REVISION": "r1"}
    settings = read(SEMIF_MODEL="none", **nli)
    assert not settings.has_causal_model
    assert settings.revision is None
    table = tmp_path / "table"
    table.touch()
    message = refusal(SEMIF_MODEL="none", SEMIF_CALIBRATION=str(table), **nli)
    assert message == "SEMIF_CALIBRATION is set, and SEMIF_MODEL is none."


def test_a_revision_without_a_letter_engine_is_refused_with_both_names():
    nli = {"SEMIF_NLI_MODEL": "checkpoint", "SEMIF_NLI_REVISION": "r1"}
    assert read(SEMIF_MODEL="none", SEMIF_REVISION="", **nli).revision is None
    message = refusal(SEMIF_MODEL="none", SEMIF_REVISION=REVISION, **nli)
    assert message == "SEMIF_REVISION pins SEMIF_MODEL, which is none: unset one of them."


def test_the_table_has_a_row_for_every_setting():
    table = settings_table()
    assert [variable(field) in table for field in fields(Settings)] == [True] * len(
        fields(Settings)
    )
    assert len(table.splitlines()) == len(fields(Settings)) + 2


REMOTE = {"SEMIF_BACKEND": "vllm", "SEMIF_BACKEND_URLS": "http://one:8000, https://two/engine/"}


def test_two_settings_send_the_work_to_servers():
    settings = read(**REMOTE)
    assert settings.is_remote
    assert settings.backend_urls == ("http://one:8000", "https://two/engine")
    assert (settings.backend_model, settings.backend_key) == (None, "")
    assert not read().is_remote


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SEMIF_BACKEND": "tgi"}, "SEMIF_BACKEND must be one of torch, vllm, sglang, not 'tgi'."),
        ({"SEMIF_BACKEND_URLS": ""}, "SEMIF_BACKEND=vllm needs SEMIF_BACKEND_URLS for"),
        ({"SEMIF_BACKEND": "torch"}, "SEMIF_BACKEND_URLS needs SEMIF_BACKEND=vllm or"),
        ({"SEMIF_BACKEND": "", "SEMIF_BACKEND_URLS": "", "SEMIF_BACKEND_TIMEOUT_S": "3"},
         "SEMIF_BACKEND_TIMEOUT_S needs SEMIF_BACKEND=vllm or SEMIF_BACKEND=sglang."),
        ({"SEMIF_VRAM_CAP_GIB": "12"}, "SEMIF_VRAM_CAP_GIB caps this process, which needs no card"),
        ({"SEMIF_NLI_MODEL": "d", "SEMIF_NLI_REVISION": "r"},
         "SEMIF_BACKEND=vllm needs SEMIF_BACKEND_NLI_URLS for SEMIF_NLI_MODEL."),
        ({"SEMIF_BACKEND_NLI_URLS": "http://three"}, "SEMIF_BACKEND_NLI_URLS needs SEMIF_NLI"),
        ({"SEMIF_MODEL": "none"}, "SEMIF_BACKEND_URLS needs SEMIF_MODEL."),
        ({"SEMIF_BACKEND_CONCURRENCY": "0"}, "SEMIF_BACKEND_CONCURRENCY must be from 1 to 256"),
        ({"SEMIF_BACKEND_KEY": "a b"}, "SEMIF_BACKEND_KEY must be printable ASCII without white"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused_by_name(changes, message):
    assert refusal(**{**REMOTE, **changes}).startswith(message)


@pytest.mark.parametrize(
    "url",
    [
        "one:8000", "ftp://one", "http://", "http://one:x", "http://one:0", "http://user:pw@one",
        "http://one?key=pw", "http://one#pw", "http://o ne", "http://one,", "http://one,http://one/",
    ],
)  # fmt: skip
def test_what_is_no_base_url_is_refused_and_not_repeated(url):
    message = refusal(**{**REMOTE, "SEMIF_BACKEND_URLS": url})
    assert message.startswith("SEMIF_BACKEND_URLS must be http or https base URLs that differ")
    assert "pw" not in message


def test_a_backend_key_comes_from_a_file_and_never_shows(tmp_path):
    file = tmp_path / "key"
    file.write_text(" some-key\n")
    settings = read(**REMOTE, SEMIF_BACKEND_KEY_FILE=str(file))
    assert settings.backend_key == "some-key"
    assert "some-key" not in repr(settings)
    both = refusal(**REMOTE, SEMIF_BACKEND_KEY_FILE=str(file), SEMIF_BACKEND_KEY="x")
    assert both == "Set SEMIF_BACKEND_KEY or SEMIF_BACKEND_KEY_FILE, not both."
    file.write_text(" ")
    assert refusal(**REMOTE, SEMIF_BACKEND_KEY_FILE=str(file)) == "SEMIF_BACKEND_KEY_FILE is empty."
