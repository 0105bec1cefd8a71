"""`semif-bento doctor`: show what would start, and why it would not; nothing is served.

It runs the same cheap gates as a start. It does not load the weights, so what only a forward can
prove (a whole checkpoint, cached equal to fresh scoring) it does not tell. Servers of an engine
have theirs loaded, so of them it proves all that a start does.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import semif_bento
from semif_bento.calibration import load_calibration
from semif_bento.cli.environment import TOKEN, Environment, read_environment
from semif_bento.cli.snapshot import verify_snapshot
from semif_bento.cli.table import render_table
from semif_bento.engine.kind import EngineKind
from semif_bento.engine.registry import KINDS, wanted_kinds
from semif_bento.entailment import LABELS, template_version
from semif_bento.errors import StartupError
from semif_bento.protocol import LETTERS
from semif_bento.settings import Settings, variable

if TYPE_CHECKING:
    from semif_bento.engine.sources import ModelSource

DEFAULT = "default"
SECRETS = (TOKEN, "SEMIF_BACKEND_KEY")


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One setting as it would be used, and where its value comes from; a token is masked."""

    name: str
    value: str
    source: str


@dataclass(slots=True)
class Report:
    """What was found: settings, facts by topic, and one sentence for each reason not to start."""

    version: str
    settings: list[SettingLine]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def add(self, topic: str, find: Callable[[], dict[str, Any]]) -> None:
        """Add the facts of a topic, or the reason why it stops the start."""
        try:
            self.facts[topic] = find()
        except StartupError as exc:
            self.reasons.append(f"{topic}: {exc}")


def run(args: argparse.Namespace) -> int:
    """Print the report; return 0 when the service would start and 1 when it would not.

    Raises:
        StartupError: an env file cannot be read.
    """
    report = examine(read_environment(os.environ, args.env_file))
    if args.json:
        would_start = not report.reasons
        print(json.dumps({"would_start": would_start, **asdict(report)}, indent=2))
    else:
        print(_render(report))
    return 1 if report.reasons else 0


def examine(environment: Environment) -> Report:
    """Collect everything that can be told without loading weights.

    A missing token stops the start and not the examination: the rest is looked at without it.
    """
    report = Report(semif_bento.__version__, _setting_lines(environment))
    try:
        settings = environment.with_token().settings()
    except StartupError as exc:
        report.reasons.append(f"settings: {exc}")
        return report
    if settings.is_remote:
        report.add("servers", lambda: _servers(settings))
    else:
        _add_engines(report, settings)
    for kind in wanted_kinds(settings):
        title = "calibration" if kind is KINDS["letters"] else f"{kind.name} calibration"
        report.add(title, lambda kind=kind: _calibration(settings, kind))
    if not environment.has_token():
        report.reasons.append(
            "settings: SEMIF_API_TOKEN or SEMIF_API_TOKEN_FILE is required; only "
            "`semif-bento serve` makes a token by itself."
        )
    return report


def _add_engines(report: Report, settings: Settings) -> None:
    report.add("device", lambda: _device(settings))
    if settings.has_causal_model:
        report.add("model", lambda: _model(settings))
        report.add("slots", lambda: _slots(settings))
    if settings.nli_model:
        report.add("nli model", lambda: _nli_model(settings))
    report.add("memory", lambda: _memory(settings))


def _setting_lines(environment: Environment) -> list[SettingLine]:
    lines = []
    for setting in fields(Settings):
        name = variable(setting)
        value = environment.values.get(name, "")
        if not value:
            default = "" if setting.default is None else str(setting.default)
            lines.append(SettingLine(name, default, DEFAULT if default else "not set"))
            continue
        shown = f"{len(value)} characters" if name in SECRETS else value
        lines.append(SettingLine(name, shown, environment.sources[name]))
    return lines


def _calibration(settings: Settings, kind: EngineKind) -> dict[str, Any]:
    table = load_calibration(kind.calibration_file(settings), kind.binding)
    if pinned := kind.pinned_model(settings):  # a package's own is known once it is loaded
        table.require_model(*pinned)
    return {"workloads": table.workloads}


def _device(settings: Settings) -> dict[str, Any]:
    import torch

    from semif_bento.engine.device import check_device

    check_device(settings)
    facts = {"device": settings.device, "dtype": settings.dtype, "torch": torch.__version__}
    if settings.device == "cpu":
        return {**facts, "threads": torch.get_num_threads()}
    card = torch.cuda.get_device_properties(0)
    return {
        **facts,
        "card": card.name,
        "memory_gib": round(card.total_memory / 2**30, 2),
        "architecture": f"sm_{card.major}{card.minor}",
        "torch_architectures": torch.cuda.get_arch_list(),
    }


def _model(settings: Settings) -> dict[str, Any]:
    from semif_bento.engine.sources import locate

    source = locate(settings.model, settings.revision)
    if source.kind == "gguf":
        return {**_place(source), "files": 1, "gib": round(source.path.stat().st_size / 2**30, 3)}
    return {**_place(source), **_files(source.path)}


def _nli_model(settings: Settings) -> dict[str, Any]:
    from semif_bento.engine.nli.template import read_configuration
    from semif_bento.engine.sources import locate_nli

    source = locate_nli(settings)
    _, template = read_configuration(source.path)  # first: it says where a tokenizer comes from
    return {
        **_place(source),
        **_files(source.path),
        "dtype": settings.nli_dtype,
        "labels": list(LABELS),
        "template": template_version(template),
    }


def _place(source: "ModelSource") -> dict[str, Any]:
    return {"kind": source.kind, "revision": source.revision, "path": str(source.path)}


def _files(directory: Path) -> dict[str, Any]:
    """Count a directory's files, once all that it must hold is there and whole.

    Raises:
        StartupError: a file is missing or not what it must be.
    """
    reports = verify_snapshot(directory, with_hashes=False)
    faults = [f"{report.name} ({report.fault})" for report in reports if report.fault]
    if faults:
        raise StartupError(f"{directory} is not whole: {', '.join(faults)}.")
    total_bytes = sum(report.size_bytes for report in reports)
    return {"files": len(reports), "gib": round(total_bytes / 2**30, 3)}


def _slots(settings: Settings) -> dict[str, Any]:
    from semif_bento.engine.letters.slots import prove_slots
    from semif_bento.engine.loading import model_directory
    from semif_bento.engine.sources import locate
    from semif_bento.engine.vocabulary import load_tokenizer

    source = locate(settings.model, settings.revision)
    directory = model_directory(source, settings.dtype, settings.cache_dir)
    slot_ids = prove_slots(load_tokenizer(directory))
    return dict(zip(LETTERS, slot_ids, strict=True))


def _servers(settings: Settings) -> dict[str, Any]:
    """Prove every server as a start does, then let go of them."""
    from semif_bento.remote.startup import open_backend

    backend = open_backend(settings)
    try:
        facts: dict[str, Any] = {
            "servers": [server.name for server in backend.status().servers],
            "calls_at_once": backend.slots,
        }
        for name, engine in backend.engines.items():
            facts[name] = engine.identity.device
            facts[f"{name}_most_options"] = engine.most_options
        return facts
    finally:
        backend.close()


def _memory(settings: Settings) -> dict[str, Any]:
    return {
        "vram_cap_gib": settings.vram_cap_gib,
        "prefix_cache_mib": settings.prefix_cache_mib,
        "branch_budget_mib": settings.branch_budget_mib if settings.vram_cap_gib is None else None,
    }


def _render(report: Report) -> str:
    rows = [(line.name, line.value or "-", line.source) for line in report.settings]
    parts = [f"semif-bento {report.version}", render_table(("setting", "value", "source"), rows)]
    for topic, facts in report.facts.items():
        lines = [f"  {name}: {_render_fact(value)}" for name, value in facts.items()]
        parts.append("\n".join([topic, *lines]))
    verdict = "It would not start." if report.reasons else "It would start."
    parts.append("\n".join([verdict, *(f"  {reason}" for reason in report.reasons)]))
    return "\n\n".join(parts)


def _render_fact(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "-" if value is None else str(value)
