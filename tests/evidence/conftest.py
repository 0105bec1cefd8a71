"""A stub of a service, stopped after each test."""

from collections.abc import Iterator

import pytest
from stub import Stub


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub()
    yield made
    made.stop()
