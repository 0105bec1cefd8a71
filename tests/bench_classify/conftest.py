"""The small checkpoint of the benchmark, opened once, and a few short pairs."""

from pathlib import Path

import pytest

from semif_bento.bench.classify.inputs import FrozenInputs, NamedPair, PairFile, freeze
from semif_bento.bench.classify.reference import Reference, make_reference
from semif_bento.bench.classify.target import Target, open_target, write_tiny_checkpoint
from semif_bento.settings import Settings

CACHE_DIR = Path("~/.cache/semif-bento").expanduser()


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    directory = write_tiny_checkpoint(tmp_path_factory.mktemp("tiny"), CACHE_DIR)
    settings = Settings(
        model="none",
        nli_model=str(directory),
        nli_revision="local",
        nli_dtype="float32",
        device="cpu",
        max_tokens=512,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")  # opening sets it for good
        return open_target(settings, is_tiny=True)


@pytest.fixture(scope="session")
def pairs() -> PairFile:
    """Two groups of one long premise each, and a pair of its own."""
    named: list[NamedPair] = []
    for group in ("parcels", "pumps"):
        premise = f"What is known of {group} stands here. " * 12
        for label in ("yes", "no", "unclear"):
            hypothesis = f'The answer to "Are the {group} late?" is {label}: It says {label}.'
            named.append(NamedPair(f"{group}-{label}", premise, hypothesis, group))
    named.append(NamedPair("single", "It rained.", "The street is wet."))
    return PairFile(tuple(named))


@pytest.fixture(scope="session")
def inputs(target: Target, pairs: PairFile) -> FrozenInputs:
    return freeze(pairs, target.encoder)


@pytest.fixture(scope="session")
def reference(target: Target, inputs: FrozenInputs) -> Reference:
    return make_reference(target, inputs)
