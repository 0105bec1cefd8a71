"""A journal of scored rows, so that a run that was ended goes on where it stopped.

Knows nothing of how rows are scored. Lines are only ever added; an answer is found again only for
the same row, model and prompt version.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from semif_bento.decisions import ModelIdentity, Scores
from semif_bento.errors import EvidenceError
from semif_bento.evidence.rows import Row
from semif_bento.protocol import PROMPT_VERSION, softmax

Key = tuple[str, str, str, str, str]


class Journal:
    """Answers by row, on disk; use it as a context manager.

    A last line that a killed run left unfinished is cut off.

    Args:
        path: JSONL file, made with its folder when missing.
        model: what answers now; answers of other models stay in the file and are not found.
        prompt_version: of what it reads now; the same holds.

    Raises:
        EvidenceError: the file cannot be written, or is not a journal.
    """

    def __init__(
        self, path: Path, model: ModelIdentity, prompt_version: str = PROMPT_VERSION
    ) -> None:
        self._model, self._prompt_version = model, prompt_version
        self._answers: dict[Key, Scores] = {}
        self._seconds: dict[Key, float] = {}
        try:
            whole_bytes = self._read(path) if path.exists() else 0
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            self._file.truncate(whole_bytes)
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise EvidenceError(
                f"{path} is not a journal that can be continued: {type(exc).__name__}."
            ) from exc

    def get(self, row: Row) -> Scores | None:
        """Return this model's answer to a row, if it stands here."""
        return self._answers.get(_key(row.sha256, self._model, self._prompt_version))

    def seconds(self, row: Row) -> float | None:
        """Return how long this model took for a row, if that stands here."""
        return self._seconds.get(_key(row.sha256, self._model, self._prompt_version))

    def add(self, row: Row, scores: Scores, seconds: float | None = None) -> None:
        """Write an answer, and how long it took, through to the disk."""
        key = _key(row.sha256, self._model, self._prompt_version)
        self._keep(key, scores, seconds)
        line = {
            "row_sha256": row.sha256,
            "model": asdict(self._model),
            "prompt_version": self._prompt_version,
            "id": scores.decision_id,
            "option_ids": scores.option_ids,
            "option_logits": scores.option_logits,
            "input_tokens": scores.input_tokens,
            "prompt_sha256": scores.prompt_sha256,
            "seconds": seconds,
        }
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> "Journal":
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, path: Path) -> int:
        """Take every whole line; return the bytes that they are."""
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for text in whole.splitlines():
            line = json.loads(text)
            model = ModelIdentity(**line["model"])
            key = _key(line["row_sha256"], model, line["prompt_version"])
            self._keep(key, _scores(line), line.get("seconds"))
        return len(whole)

    def _keep(self, key: Key, scores: Scores, seconds: float | None) -> None:
        self._answers[key] = scores
        if seconds is not None:
            self._seconds[key] = seconds


def _key(row_sha256: str, model: ModelIdentity, prompt_version: str) -> Key:
    return row_sha256, model.source, model.revision, model.dtype, prompt_version


def _scores(line: dict[str, Any]) -> Scores:
    logits = tuple(line["option_logits"])
    return Scores(
        line["id"],
        tuple(line["option_ids"]),
        logits,
        softmax(logits),
        line["input_tokens"],
        line["prompt_sha256"],
    )
