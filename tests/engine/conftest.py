"""Guards that tests of the engine put around it."""

from collections.abc import Iterator

import pytest
from models.network import blocked_network

from semif_bento.engine.backbone import Backbone


@pytest.fixture
def no_network() -> Iterator[None]:
    """Fail the test on any connection that leaves this machine, one that was caught too."""
    with blocked_network() as tried:
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
