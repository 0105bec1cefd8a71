import subprocess
import sys
from pathlib import Path

import pytest

from image import engine, host
from image.check import debian

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    directory = tmp_path / "house"
    directory.mkdir()
    (directory / "a-1-py3-none-any.whl").write_text("wheel")
    (directory / "notes.txt").write_text("no wheel")
    return directory


def command(directory: Path, name: str, code: int) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\nexit {code}\n")
    (directory / name).chmod(0o755)


def test_a_build_gets_the_hosts_certificates_and_wheels_by_neutral_names(
    tmp_path: Path, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "authorities.pem"
    bundle.write_text("certificates")
    monkeypatch.setenv("PIP_CERT", str(bundle))
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path} file://{house}")
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    arguments = host.gather(mounted)
    assert (mounted / "certificates.pem").read_text() == "certificates"
    assert (mounted / "wheels" / "a-1-py3-none-any.whl").read_text() == "wheel"
    assert not (mounted / "wheels" / "notes.txt").exists()
    assert arguments == host.BUILD_ARGUMENTS
    assert not any(str(tmp_path) in value for value in arguments.values())


def test_a_host_without_certificates_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "find_certificates", lambda: None)
    assert host.gather(tmp_path).keys() == {"UV_FIND_LINKS"}


@pytest.mark.parametrize(
    ("commands", "found"),
    [
        ({"docker": 0, "podman": 0}, "docker"),
        ({"docker": 1, "podman": 0, "buildah": 0}, "podman"),
        ({"buildah": 0}, "buildah"),
    ],
    ids=["a docker that answers", "a docker without a daemon", "buildah alone"],
)
def test_the_engine_is_the_first_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: dict[str, int], found: str
) -> None:
    for name, code in commands.items():
        command(tmp_path, name, code)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine.find_engine().name == found


def test_make_image_without_an_engine_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "image.build"],
        cwd=PROJECT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "install podman or buildah" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_image_check_asks_for_root_before_it_touches_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debian.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(debian.subprocess, "run", None)
    with pytest.raises(debian.Unfit, match="needs root"):
        debian.install_tools()


def test_the_image_check_names_what_it_cannot_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(debian.Unfit, match=r"needs podman, runc, .*only on Debian"):
        debian.install_tools()
