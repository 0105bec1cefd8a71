"""A running service as a scorer, asked over HTTP; knows nothing of what the answers are for."""

import contextlib
import time
from dataclasses import fields
from typing import Any

import httpx

from semif_bento.decisions import (
    Decision,
    DirectOutcome,
    EngineStatus,
    ModelIdentity,
    Option,
    PrefixCacheStatus,
    ScoreRequest,
    Scores,
    ServerStatus,
    SharedOutcome,
    SharedTiming,
)
from semif_bento.engine.letters.kind import LETTERS
from semif_bento.errors import EvidenceError, InvalidRequest

TRIES = 6
LONGEST_WAIT_S = 10.0
TIMEOUT_S = 600.0
PROBE = ScoreRequest(
    "The lamp is on.",
    (
        Decision(
            "probe",
            "Is the lamp on?",
            (Option("yes", "The lamp is on"), Option("no", "The lamp is off")),
        ),
    ),
)


class ServiceScorer:
    """Scores through POST /decide and /decide/shared of one service. Not thread-safe.

    Every answer must come from the model that answered first. A full queue or a device out of
    memory is waited for, as `Retry-After` says, a few times.

    Args:
        url: where the service listens, without a path.
        token: its bearer token.
        engine: which of its engines is asked.

    Raises:
        EvidenceError: as `direct` raises it.
    """

    def __init__(self, url: str, token: str, engine: str = LETTERS.name) -> None:
        self._engine = engine
        self._service = _Service(url, token)
        self.url = self._service.url
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self.close)
            self.health: dict[str, Any] = self._service.send("GET", "/health", None)
            probed = self._service.send("POST", "/decide", self._direct_body(PROBE))
            self.identity = _identity(probed)
            self.prompt_version: str = probed["prompt_version"]
            on_failure.pop_all()

    def direct(self, request: ScoreRequest) -> DirectOutcome:
        """Ask POST /decide.

        Raises:
            InvalidRequest: the service refuses the row (422).
            EvidenceError: the service is gone, refuses the token, fails, or runs another model.
        """
        answer = self._service.send("POST", "/decide", self._direct_body(request))
        self._require_same_model(answer)
        return DirectOutcome(_scores(answer), answer["forward_seconds"], answer["total_seconds"])

    def shared(self, request: ScoreRequest) -> SharedOutcome:
        """Ask POST /decide/shared.

        Raises:
            The same as `direct`.
        """
        decisions = [_decision_body(decision) for decision in request.decisions]
        body = {"state": request.state, "decisions": decisions, "engine": self._engine}
        answer = self._service.send("POST", "/decide/shared", body)
        for result in answer["results"]:
            self._require_same_model(result)
        return SharedOutcome(
            tuple(map(_scores, answer["results"])),
            SharedTiming(**answer["timing"]),
            answer["results"][0]["model"]["serving_config"],
        )

    def status(self) -> EngineStatus:
        """Return what GET /health tells now.

        Raises:
            EvidenceError: the service is gone.
        """
        health = self._service.send("GET", "/health", None)
        told = {f.name: health[f.name] for f in fields(EngineStatus) if f.name != "servers"}
        told["prefix_cache"] = PrefixCacheStatus(**health["prefix_cache"])
        servers = tuple(ServerStatus(**server) for server in health.get("servers", ()))
        return EngineStatus(**told, servers=servers)

    def close(self) -> None:
        """Close the connections."""
        self._service.close()

    def _direct_body(self, request: ScoreRequest) -> dict[str, Any]:
        [decision] = request.decisions
        return {"state": request.state, **_decision_body(decision), "engine": self._engine}

    def _require_same_model(self, answer: dict[str, Any]) -> None:
        found = _identity(answer)
        if found != self.identity:
            raise EvidenceError(
                f"The service changed its model: {found.source} at {found.revision} answers, it "
                f"was {self.identity.source} at {self.identity.revision}. What was scored is kept."
            )


def read_health(url: str, token: str) -> dict[str, Any]:
    """Return what GET /health tells now.

    Raises:
        EvidenceError: the service cannot be reached, or refuses the token.
    """
    with contextlib.closing(_Service(url, token)) as service:
        return service.send("GET", "/health", None)


class _Service:
    """The connections to one service, and what its statuses mean."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(TIMEOUT_S, connect=10.0),
            trust_env=httpx.URL(self.url).host not in ("127.0.0.1", "::1", "localhost"),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Return the body of a good answer; wait and ask again where the service is busy.

        Raises:
            InvalidRequest: 422.
            EvidenceError: the service is gone, refuses the token, or fails.
        """
        for left in reversed(range(TRIES)):
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.HTTPError as exc:
                raise EvidenceError(
                    f"The service at {self.url} cannot be reached: {type(exc).__name__}."
                ) from exc
            if answer.status_code not in (429, 503) or not left:
                return self._read(answer)
            time.sleep(_wait_s(answer))
        raise AssertionError("unreachable")

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        try:
            value = answer.json()
            if answer.status_code == 200:
                return value
            message = value["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = "its answer is not of this service"
        if answer.status_code == 401:
            raise EvidenceError(f"The service at {self.url} refuses the token.")
        if answer.status_code == 422:
            raise InvalidRequest(message)
        raise EvidenceError(f"The service at {self.url} answered {answer.status_code}: {message}")


def _wait_s(answer: httpx.Response) -> float:
    asked = answer.headers.get("Retry-After", "1")
    return min(float(asked) if asked.isdecimal() else 1.0, LONGEST_WAIT_S)


def _decision_body(decision: Decision) -> dict[str, Any]:
    options = [
        {
            "id": option.id,
            "description": option.description,
            **({} if option.label is None else {"label": option.label}),
        }
        for option in decision.options
    ]
    return {"id": decision.id, "question": decision.question, "options": options}


def _identity(result: dict[str, Any]) -> ModelIdentity:
    facts = {key: value for key, value in result["model"].items() if key != "serving_config"}
    return ModelIdentity(**facts)


def _scores(result: dict[str, Any]) -> Scores:
    return Scores(
        result["id"],
        tuple(result["option_ids"]),
        tuple(result["option_logits"]),
        tuple(result["probabilities"]),
        result["input_tokens"],
        result["prompt_sha256"],
    )
