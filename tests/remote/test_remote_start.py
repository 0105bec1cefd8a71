"""A start over engine servers: what must hold of each of them, and what stops it."""

import subprocess
import sys

import pytest
from asking import decide, servers
from models.byte_qwen import byte_tokenizer
from scripted_engine import KEY, MODEL, Answer, made_up

from semif_bento.errors import StartupError


def refusal(gateway, *engines, **changes) -> str:
    with pytest.raises(StartupError) as caught:
        gateway(*engines, **changes)
    [line] = str(caught.value).splitlines()
    return line


def test_every_server_is_examined_and_warm_before_anything_is_served(engines, gateway):
    backend = gateway(*engines)
    assert all(engine.checks >= 1 for engine in engines)
    assert all(len(engine.calls) == 2 for engine in engines)  # narrow rows, and the widest one
    narrow, wide = engines[0].calls
    ids = "logprob_token_ids" if engines[0].dialect == "vllm" else "token_ids_logprob"
    assert (len(narrow[ids]), len(wide[ids])) == (16, 26)
    assert [server.name for server in servers(backend)] == [engine.name for engine in engines]
    assert all(server.is_ready for server in servers(backend))


def test_an_answer_names_the_engine_its_version_and_the_served_model(engines, gateway):
    backend = gateway(*engines)
    assert decide(backend).scores
    expected = (
        "log-probabilities, over the whole vocabulary, of the declared answer slots at the last "
        f"position, by {engines[0].dialect} 9.9.9"
    )
    assert backend.first.direct_readout == backend.first.shared_readout == expected


def test_the_identity_tells_what_computes_and_where_the_tokenizer_is_from(
    engines, gateway, tokenizer_directory
):
    name = engines[0].dialect
    identity = gateway(*engines).identity
    assert (identity.source, identity.revision) == (str(tokenizer_directory), "r1")
    assert identity.device == f"{name} 9.9.9 on 2 servers, serving {MODEL}"
    assert identity.torch_version == f"that of {name} 9.9.9"


def test_a_server_that_is_not_there_stops_the_start(engines, gateway):
    engines[1].stop()
    line = refusal(gateway, *engines)
    assert line == f"{engines[1].name}: An engine server cannot be reached."


def test_a_server_that_is_not_ready_stops_the_start(engines, gateway):
    engines[1].health = 503
    assert refusal(gateway, *engines).startswith(f"{engines[1].name}: Too many requests")
    assert engines[1].calls == []


def test_another_model_stops_the_start_before_it_is_asked(engines, gateway):
    engines[1].models = [{"id": "another", "max_model_len": 4096}]
    line = refusal(gateway, *engines)
    assert line == f"{engines[1].name} serves another, not {MODEL}; set what it is called there."
    assert engines[1].calls == []


def test_too_little_room_for_a_prompt_stops_the_start(engines, gateway):
    engines[1].models = [{"id": MODEL, "max_model_len": 2048}]
    assert "takes 2048 tokens; SEMIF_MAX_TOKENS needs 2049 of it." in refusal(gateway, *engines)
    assert engines[1].calls == []


def test_another_tokenizer_stops_the_start_before_it_is_asked(engines, gateway):
    engines[1].tokenizer = byte_tokenizer(merges=[("e", "v")])
    line = refusal(gateway, *engines)
    assert line == f"{engines[1].name} has another tokenizer than the model named here."
    assert engines[1].calls == []


def test_scores_that_differ_between_servers_stop_the_start(engines, gateway):
    engines[1].compute = lambda prompts, ids: [
        [value - 0.01 for value in row] for row in made_up(prompts, ids)
    ]
    assert "differ by 0.01 from another server's (allowed in float32: 0.002)" in refusal(
        gateway, *engines
    )


def test_noise_of_the_data_type_does_not_stop_the_start(engines, gateway):
    engines[1].compute = lambda prompts, ids: [
        [value - 0.01 for value in row] for row in made_up(prompts, ids)
    ]
    gateway(*engines, dtype="bfloat16")


def test_another_version_stops_the_start(engines, gateway):
    engines[1].version = "9.9.8"
    assert refusal(gateway, *engines) == (
        f"{engines[1].name} runs version 9.9.8, another server 9.9.9."
    )


def test_a_small_limit_of_tokens_is_proven_on_what_fits_it(engines, gateway):
    gateway(*engines, max_tokens=900)
    assert [len(engine.calls) for engine in engines] == [1, 1]
    key = "prompt" if engines[0].dialect == "vllm" else "input_ids"
    assert len(engines[0].calls[0][key]) == 2  # of two options; sixteen make over 900 bytes


def test_a_limit_that_no_prompt_fits_stops_the_start(engines, gateway):
    assert refusal(gateway, *engines, max_tokens=64) == (
        "SEMIF_MAX_TOKENS is too little for any prompt."
    )


def test_numbers_that_must_not_be_believed_stop_the_start(engines, gateway):
    engines[1].compute = lambda prompts, ids: [[float("nan")] * len(ids)] * len(prompts)
    assert refusal(gateway, *engines).endswith("gave a number that is not finite.")


def test_a_key_that_a_server_refuses_stops_the_start_and_is_not_told(engines, gateway):
    engines[1].key = KEY
    line = refusal(gateway, *engines, backend_key="wrong-key-0123456789")
    assert line == f"{engines[1].name}: An engine server refused a request (401)."


def test_a_key_opens_the_servers(engines, gateway):
    for engine in engines:
        engine.key = KEY
    decide(gateway(*engines, backend_key=KEY))


def test_a_failed_start_leaves_no_connection_or_thread(engines, gateway):
    engines[1].refuse = Answer(500, b"")
    assert refusal(gateway, *engines).endswith("An engine server failed (500).")


def test_a_tokenizer_without_weights_is_all_that_is_loaded(engines, gateway, tokenizer_directory):
    assert not list(tokenizer_directory.glob("*.safetensors"))
    decide(gateway(*engines))


def test_the_room_itself_imports_no_torch():
    # transformers does so on its own when it loads a tokenizer, where torch is installed.
    program = "import sys; from semif_bento.remote import startup; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
