"""Run `semif-bento` as a user would: in a process of its own, with a clean environment."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
LOCAL_ENV = PROJECT / "configs" / "local.env"
COMMAND = (sys.executable, "-m", "semif_bento.cli.main")


def environment(home: Path, **more: str) -> dict[str, str]:
    """Nothing of the caller's settings; the converted model is kept where a user's would be."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SEMIF_", "HF_", "BENTOML_"))}
    kept.pop("HOST", None)
    kept.pop("PORT", None)
    return {
        **kept,
        "BENTOML_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        **more,
    }


def run(
    home: Path, *arguments: str, timeout_s: float = 400.0, **more: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
