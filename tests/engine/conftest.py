"""Guards that tests of the engine put around it."""

import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from models.loaded import LoadedModel, build_tiny_qwen

from semif_bento.engine.backbone import Backbone

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from semif_bento.engine.scorer import TorchScorer

LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test on any connection or look-up that leaves this machine, a caught one too."""
    tried: list[object] = []

    def guard(name: str, place: int) -> None:
        original = getattr(socket.socket if name.startswith("connect") else socket, name)

        def guarded(*args: object, **kwargs: object) -> object:
            target = args[place]
            host = str(target[0] if isinstance(target, tuple) else target)
            if not host.startswith(LOOPBACK) and not host.startswith("/"):
                tried.append(target)
                raise OSError("the network is blocked in this test")
            return original(*args, **kwargs)

        owner = socket.socket if name.startswith("connect") else socket
        monkeypatch.setattr(owner, name, guarded)

    guard("connect", 1)
    guard("connect_ex", 1)
    guard("getaddrinfo", 0)
    yield
    assert tried == []


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs of any backbone from here on, by name."""
    runs: list[str] = []
    for name in ("whole", "prefill", "branches"):
        original = getattr(Backbone, name)

        def counted(*args: object, _name: str = name, _original=original) -> object:
            runs.append(_name)
            return _original(*args)

        monkeypatch.setattr(Backbone, name, counted)
    return runs


@pytest.fixture(scope="session")
def small_scorer(
    qwen_tokenizer: "PreTrainedTokenizerFast", assemble: "Callable[..., TorchScorer]"
) -> "TorchScorer":
    """A scorer around a hybrid model small enough to ask thousands of times, in float32.

    Tests may empty its prefix cache and give it another guard or budget; never rely on either.
    """
    shape = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
    model = build_tiny_qwen(**shape, layer_types=["linear_attention", "full_attention"])
    return assemble(LoadedModel(model, qwen_tokenizer, "float32"), max_tokens=4096)
