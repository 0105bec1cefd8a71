"""What all tests share: one thread a process, and models that are loaded once a session."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

# Before torch is imported, here and in servers that tests start: several processes on few cores,
# and waiting OpenMP threads that spin make each other many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from live import Gate
    from models.loaded import LoadedModel
    from transformers import PreTrainedTokenizerFast

    from semif_bento.engine.letters.scorer import TorchScorer

# Imports of torch stay inside the fixtures: most tests need none, and it is slow.


@pytest.fixture(scope="session")
def smollm2() -> "Callable[[str], LoadedModel]":
    """SmolLM2-135M by dtype: `smollm2("float32")`. Shared by all tests; never change it."""
    from models.loaded import load_smollm2

    return load_smollm2


@pytest.fixture(scope="session")
def tiny_qwen() -> "Callable[[str], LoadedModel]":
    """A tiny random hybrid Qwen3.5 by dtype. Shared by all tests; never change it."""
    from models.loaded import load_tiny_qwen

    return load_tiny_qwen


@pytest.fixture(scope="session")
def qwen_tokenizer() -> "PreTrainedTokenizerFast":
    """The real Qwen3.5 vocabulary."""
    from models.qwen_vocabulary import load_qwen_tokenizer

    return load_qwen_tokenizer()


@pytest.fixture(scope="session")
def assemble() -> "Callable[..., TorchScorer]":
    """Build a scorer around a loaded model; keywords are fields of `Settings`."""
    from models import scorers

    return scorers.assemble


@pytest.fixture
def gate(tmp_path: Path) -> "Iterator[Gate]":
    """What a call of a scripted engine waits for; open at the end, so that none waits on."""
    from live import Gate

    made = Gate(tmp_path)
    yield made
    made.open()
