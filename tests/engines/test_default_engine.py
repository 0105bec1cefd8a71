"""Which engine is asked where nobody names one, and what engines of one model are called."""

import asyncio
import time

import pytest
from models.echo.kind import ECHO
from models.echo.opening import EchoEngine

from semif_bento.api.answers import Answers
from semif_bento.api.asking import Asker
from semif_bento.api.catalogue import served_models
from semif_bento.api.schema import DecideRequest
from semif_bento.backend import Backend
from semif_bento.calibration import CalibrationTable
from semif_bento.engine.registry import KINDS
from semif_bento.errors import StartupError
from semif_bento.serving.scheduler import Scheduler
from semif_bento.settings import Settings

TOKEN = {"SEMIF_API_TOKEN": "t" * 40}
BODY = {
    "id": "d",
    "state": "s",
    "question": "q?",
    "options": [{"id": "a", "description": "a"}, {"id": "b", "description": "b"}],
}


class Second(EchoEngine):
    """Another engine over the same model."""

    name = "second"


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(KINDS, "echo", ECHO)
    monkeypatch.setitem(KINDS, "second", ECHO)


def asked_by_default(backend: Backend, **named: str) -> str:
    scheduler = Scheduler(max_waiting=1, timeout_s=10)
    scheduler.open(lambda: backend)
    tables = {name: CalibrationTable({}, binding=ECHO.binding) for name in backend.engines}
    answers = Answers(Settings(), Asker(scheduler, tables))

    async def ask() -> str:
        body = DecideRequest.model_validate({**BODY, **named})
        return (await answers.decide(body, time.monotonic())).engine

    try:
        return asyncio.run(ask())
    finally:
        scheduler.close()


def test_the_default_engine_is_asked_and_another_by_its_name():
    engines = {"echo": EchoEngine(), "second": Second()}
    assert asked_by_default(Backend(engines)) == "echo"
    assert asked_by_default(Backend(engines, "second")) == "second"
    assert asked_by_default(Backend(engines, "second"), engine="echo") == "echo"


def test_a_default_that_was_not_opened_ends_the_start():
    with pytest.raises(StartupError, match="second is not among"):
        Backend({"echo": EchoEngine()}, "second")


def test_engines_of_one_model_are_told_apart_and_the_default_has_its_plain_name():
    backend = Backend({"echo": EchoEngine(), "second": Second()}, "second")
    models = served_models(backend, ("jev-latest",))
    assert [(model.engine, model.names) for model in models] == [
        ("second", ("echo@r1", "echo", "jev-latest")),
        ("echo", ("echo@r1#echo", "echo#echo")),
    ]


@pytest.mark.parametrize(
    ("given", "default"),
    [
        ({}, "letters"),
        ({"SEMIF_ENGINE": "likelihood"}, "likelihood"),
        ({"SEMIF_MODEL": "none", "SEMIF_NLI_MODEL": "/n", "SEMIF_NLI_REVISION": "r"}, "nli"),
        ({"SEMIF_ENGINE": "nli", "SEMIF_NLI_MODEL": "/n", "SEMIF_NLI_REVISION": "r"}, "nli"),
    ],
)
def test_the_settings_name_it(given, default):
    assert Settings.from_env({**TOKEN, **given}).default_engine == default


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SEMIF_ENGINE": "nli"}, "SEMIF_ENGINE=nli needs SEMIF_NLI_MODEL"),
        ({"SEMIF_ENGINE": "other"}, "SEMIF_ENGINE"),
        (
            {
                "SEMIF_ENGINE": "likelihood",
                "SEMIF_MODEL": "none",
                "SEMIF_NLI_MODEL": "/n",
                "SEMIF_NLI_REVISION": "r",
            },
            "SEMIF_ENGINE=likelihood needs SEMIF_MODEL",
        ),
    ],
)
def test_an_engine_without_its_model_ends_the_start(given, said):
    with pytest.raises(StartupError, match=said):
        Settings.from_env({**TOKEN, **given})
