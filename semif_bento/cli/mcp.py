"""`semif-bento mcp`: a running service's decisions as tools, over standard input and output.

Knows the service by POST /v1/decisions, GET /v1/models and GET /health alone, and loads no model.
Standard output belongs to the protocol, so nothing here prints.
"""

import argparse
import asyncio
from typing import Any

import httpx2

from semif_bento.api.decisions.results import DecisionsResponse
from semif_bento.cli import mcp_tools
from semif_bento.cli.mcp_tools import Refused, Status
from semif_bento.cli.target import read_token

TIMEOUT_S = 600.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends.

    Raises:
        EvidenceError: there is no token, or the package `mcp` is not installed.
    """
    asyncio.run(_serve(args.url, read_token(args.token_file), args.model))
    return 0


async def _serve(url: str, token: str, model: str | None) -> None:
    async with httpx2.AsyncClient(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {token}"},
        timeout=httpx2.Timeout(TIMEOUT_S, connect=10.0),
        trust_env=httpx2.URL(url).host not in LOOPBACK,
    ) as http:
        await mcp_tools.build(RunningService(http, model)).run_stdio_async()


class RunningService:
    """A running service.

    Args:
        http: reaches it, with its token.
        model: the name of the model to ask; None for the first that it lists.
    """

    def __init__(self, http: httpx2.AsyncClient, model: str | None) -> None:
        self._http = http
        self._model = model

    async def decide(self, text: str, questions: list[dict[str, Any]]) -> DecisionsResponse:
        """Ask questions, in the words of POST /v1/decisions, about a text.

        Raises:
            Refused: the service cannot be reached, or does not answer.
        """
        model = self._model or (await self._models())[0]
        body = {"model": model, "input": text, "questions": questions}
        return DecisionsResponse.model_validate(await self._send("POST", "/v1/decisions", body))

    async def status(self) -> Status:
        """Ask what is served.

        Raises:
            Refused: as `decide` raises it.
        """
        health = await self._send("GET", "/health")
        return Status(
            status=health["status"],
            version=health["version"],
            device=health["device_name"],
            models=await self._models(),
        )

    async def _models(self) -> list[str]:
        return [model["id"] for model in (await self._send("GET", "/v1/models"))["data"]]

    async def _send(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        try:
            response = await self._http.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise Refused(f"The service cannot be reached: {type(error).__name__}.") from None
        try:
            answer = response.json()
        except ValueError:
            raise Refused(f"The service answered {response.status_code} and no JSON.") from None
        if response.is_error:
            error = answer.get("error") or answer.get("detail") or {}
            said = error.get("message", "") if isinstance(error, dict) else str(error)
            raise Refused(f"The service refused ({response.status_code}): {said}")
        return answer
