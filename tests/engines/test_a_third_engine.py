"""An engine that is one folder and one line of the list serves every route that others do."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from models.echo.kind import ECHO

from semif_bento.api.answers import Answers
from semif_bento.api.asking import Asker
from semif_bento.api.catalogue import Catalogue
from semif_bento.api.schema import DecideRequest, SharedRequest
from semif_bento.api.systemone.answers import SystemOne
from semif_bento.api.systemone.schema import SystemOneRequest, check
from semif_bento.api.typed import TypedAsker
from semif_bento.calibration import load_calibration
from semif_bento.engine.registry import KINDS, wanted_kinds
from semif_bento.engine.startup import open_backend
from semif_bento.errors import InvalidRequest, NotFound, StartupError
from semif_bento.remote import startup as remote
from semif_bento.serving.scheduler import Scheduler
from semif_bento.settings import Settings

SETTINGS = Settings(model="none", device="cpu", revision=None)
STATE = "blue blue blue red"
DECISION = {
    "id": "d",
    "question": "Which colour is named most?",
    "options": [{"id": "red", "description": "red"}, {"id": "blue", "description": "blue"}],
}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line."""
    monkeypatch.setitem(KINDS, "echo", ECHO)


@pytest.fixture
def asker(tmp_path):
    table = tmp_path / "table.json"
    table.write_text('{"hot": 2.0}')
    scheduler = Scheduler(max_waiting=1, timeout_s=10)
    scheduler.open(lambda: open_backend(SETTINGS))
    yield Asker(scheduler, {"echo": load_calibration(table, ECHO.binding)})
    scheduler.close()


def wait(answer: Awaitable[Any]) -> Any:
    async def run() -> Any:
        return await answer

    return asyncio.run(run())


def test_the_settings_open_it_and_nothing_else():
    assert list(wanted_kinds(SETTINGS)) == [ECHO]
    assert list(open_backend(SETTINGS).engines) == ["echo"]


def test_decide_and_decide_shared_ask_it_by_name(asker):
    answers = Answers(SETTINGS, asker)
    body = DecideRequest.model_validate(
        {**DECISION, "state": STATE, "engine": "echo", "workload": "hot", "diagnostics": True}
    )
    direct = wait(answers.decide(body, time.monotonic()))
    assert direct.option_logits == [1.0, 3.0]
    assert direct.prompt_version == "echo-v1"
    assert direct.model.source == "echo"
    assert direct.calibrated.temperature == 2.0
    assert direct.diagnostics.margin > 0.5
    body = SharedRequest.model_validate({"state": STATE, "decisions": [DECISION], "engine": "echo"})
    shared = wait(answers.decide_shared(body, time.monotonic()))
    assert shared.results[0].probabilities == direct.probabilities
    assert answers.health().engines == ["echo"]


def test_system_one_asks_it_by_its_models_name(asker):
    body = {
        "model": "echo@r1",
        "state": STATE,
        "questions": {
            "q": {"type": "choice", "criteria": {"red": None, "blue": None}},
            "one": {"type": "choice", "criteria": {"only": None}},
        },
    }
    catalogue = Catalogue.over(asker.backend, ())
    systemone = SystemOne(catalogue, TypedAsker(asker))
    answer = wait(systemone.answer(check(SystemOneRequest, body), {}, time.monotonic()))
    assert answer.answers["q"].choice == "blue"
    assert answer.answers["q"].prompt_version == "echo-v1"
    assert answer.answers["one"].trivial
    assert "how often an option's name" in catalogue.models[0].description


def test_another_engine_is_absent_and_says_so(asker):
    with pytest.raises(NotFound, match="SEMIF_NLI_MODEL enables it"):
        asker.engine("nli")


def test_its_tables_are_its_own(tmp_path):
    table = tmp_path / "table.json"
    table.write_text('{"w": {"temperature": 1.0, "provenance": {}}}')
    with pytest.raises(StartupError, match="SEMIF_ECHO_CALIBRATION"):
        load_calibration(table, ECHO.binding)


def test_a_name_that_is_not_on_the_list_is_refused():
    with pytest.raises(ValueError, match="letters, likelihood, nli, echo"):
        DecideRequest.model_validate({**DECISION, "state": STATE, "engine": "other"})


def test_over_servers_an_engine_without_a_remote_part_ends_the_start():
    settings = Settings(backend="vllm", backend_urls=("http://127.0.0.1:9",), model="none")
    with pytest.raises(StartupError, match="echo engine does not run over vllm"):
        remote.open_backend(settings)


def test_an_unknown_workload_names_its_own(asker):
    answers = Answers(SETTINGS, asker)
    body = DecideRequest.model_validate(
        {**DECISION, "state": STATE, "engine": "echo", "workload": "cold"}
    )
    with pytest.raises(InvalidRequest, match="known workloads: hot"):
        wait(answers.decide(body, time.monotonic()))
