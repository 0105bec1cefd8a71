"""Reference predictions in SemIf's own result format: read from a file, or made on the spot.

They are made with SemIf's scorers as the package `fastjev` ships them, on the same weights in the
same process. Knows nothing of what is compared with them.
"""

import importlib.util
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from semif_bento.decisions import Scores
from semif_bento.errors import EvidenceError
from semif_bento.evidence.rows import Row
from semif_bento.evidence.target import LoadedModel, Target
from semif_bento.protocol import softmax

MAKER = "fastjev"

Reference = dict[str, Scores]
"""Answers by row id."""


def require_maker(*, is_local: bool) -> None:
    """Refuse to begin without a way to get a reference.

    Raises:
        EvidenceError: the model runs elsewhere, or `fastjev` is not installed.
    """
    if not is_local:
        raise EvidenceError(
            "Through a service a reference is needed: --reference FILE. A run without --url, on "
            "the same model, leaves one as reference.jsonl in its folder."
        )
    if importlib.util.find_spec(MAKER) is None:
        raise EvidenceError(f"Without --reference the package {MAKER} is needed to make one.")


def read_reference(path: Path) -> Reference:
    """Read SemIf's results, one JSON object a line.

    Raises:
        EvidenceError: the file cannot be read, or a line is not such a result; it is named.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as exc:
        raise EvidenceError(f"{path} cannot be read: {type(exc).__name__}.") from exc
    found: Reference = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            scores = _scores(json.loads(line))
        except (ValueError, KeyError, TypeError, IndexError) as exc:
            raise EvidenceError(
                f"{path} line {number} is not a result of SemIf: {type(exc).__name__}."
            ) from exc
        found[scores.decision_id] = scores
    return found


def make_reference(target: Target, rows: Sequence[Row], path: Path) -> Reference:
    """Score rows with SemIf's direct scorer, on the untouched model behind our own.

    Results are written to `path` one by one; those of the same row and model that stand there
    already are taken as they are. A row over the token limit is left out: ours refuses it too.

    Raises:
        EvidenceError: the file cannot be written.
    """
    loaded = target.loaded
    if loaded is None:
        raise EvidenceError("A reference is made in process only.")
    identity = asdict(target.scorer.identity)
    wanted = {row.sha256 for row in rows}
    found: Reference = {}
    try:
        known = _read_own(path, identity, wanted)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(map(_line, known.values())), encoding="utf-8")
        with path.open("a", encoding="utf-8") as file:
            for row in tqdm(rows, desc="reference", unit="row"):
                result = known.get(row.sha256)
                if result is None:
                    result = _score(loaded, row, identity, target.max_tokens)
                    if result is None:
                        continue
                    file.write(_line({**result, "row_sha256": row.sha256}))
                    file.flush()
                found[row.decision.id] = _scores({**result, "id": row.decision.id})
    except OSError as exc:
        raise EvidenceError(f"{path} cannot be written: {exc.strerror}.") from exc
    return found


def _score(
    loaded: LoadedModel, row: Row, identity: dict[str, Any], max_tokens: int
) -> dict[str, Any] | None:
    from fastjev._runtime import direct

    asked = {
        "id": row.decision.id,
        "state": row.state,
        "question": row.decision.question,
        "options": [asdict(option) for option in row.decision.options],
    }
    try:
        return direct.score(loaded.model, loaded.tokenizer, asked, identity, max_tokens)
    except ValueError as exc:
        if "exceed limit" in str(exc):
            return None
        raise EvidenceError(f"SemIf's scorer refuses {row.decision.id!r}: {exc}") from exc
    except RuntimeError as exc:  # torch's own, out of memory among them
        kind = type(exc).__name__
        raise EvidenceError(f"SemIf's scorer failed on {row.decision.id!r}: {kind}.") from exc


def _read_own(path: Path, identity: dict[str, Any], wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Return the wanted results that an earlier run on this model has left, by hash of the row."""
    known = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        try:
            result = json.loads(line)
        except ValueError:
            continue  # the line on which that run was ended
        if result.get("model") == identity and result.get("row_sha256") in wanted:
            known[result["row_sha256"]] = result
    return known


def _line(result: dict[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False) + "\n"


def _scores(result: dict[str, Any]) -> Scores:
    logits = tuple(map(float, result["option_logits"]))
    if len(logits) != len(result["option_ids"]) or not all(map(math.isfinite, logits)):
        raise ValueError("one finite logit an option")
    return Scores(
        str(result["id"]),
        tuple(result["option_ids"]),
        logits,
        softmax(logits),
        int(result["input_tokens"]),
        str(result["prompt_sha256"]),
    )
