from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from semif_bento import __version__
from semif_bento.settings import Settings
from tests.deploy import manifests
from tests.deploy.manifests import DEPLOY

MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
IMAGE_USER = 1034


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda path: path.stem)
def test_every_kubernetes_object_fits_its_schema_and_has_no_unknown_field(file: Path) -> None:
    for document in yaml.safe_load_all(file.read_text()):
        kubernetes_validate.validate(document, "1.31", strict=True)


@pytest.mark.parametrize("name", ["compose", "systemd", "kubernetes"])
def test_every_deployment_sets_only_what_the_service_accepts(name: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    environ = manifests.environments()[name]
    assert "SEMIF_API_TOKEN" not in environ
    settings = Settings.from_env(environ | {"SEMIF_API_TOKEN_FILE": str(token)})
    assert (settings.device, settings.vram_cap_gib) == ("cuda", 12)


def test_the_deployments_serve_with_the_same_settings() -> None:
    unlike = {"SEMIF_API_TOKEN_FILE"}
    compose, systemd, kubernetes = (
        {name: value for name, value in environ.items() if name not in unlike}
        for environ in manifests.environments().values()
    )
    assert compose == systemd
    assert kubernetes.items() <= compose.items()


def test_compose_fences_the_container_in() -> None:
    service = manifests.compose()
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["mem_limit"] == "12g"
    assert service["volumes"][0].endswith(":/var/cache/huggingface:ro")
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device["device_ids"] == ["${GPU:-0}"]


def test_systemd_fences_the_container_in() -> None:
    words = manifests.podman_command()
    fence = {"--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=12g"}
    assert fence <= set(words)
    assert "--device=nvidia.com/gpu=${GPU}" in words
    assert "--volume=${HF_CACHE}:/var/cache/huggingface:ro" in words


@pytest.mark.parametrize(("file", "kind"), [("service.yaml", "Deployment"), ("cache.yaml", "Job")])
def test_kubernetes_fences_the_containers_in(file: str, kind: str) -> None:
    spec = manifests.kubernetes(file, kind)["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsUser"] == IMAGE_USER
    assert spec["enableServiceLinks"] is False
    (container,) = spec["containers"]
    assert container["image"] == f"semif-bento:{__version__}"
    assert container["resources"]["limits"]["memory"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_kubernetes_runs_one_process_a_card_and_every_probe_gives_up() -> None:
    deployment = manifests.kubernetes("service.yaml", "Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    (container,) = manifests.pod()["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert 0 < container[probe]["timeoutSeconds"] <= container[probe]["periodSeconds"]


def test_every_deployment_lets_a_running_call_finish() -> None:
    timeout_s = float(manifests.SETTINGS["SEMIF_TIMEOUT_S"])
    assert int(manifests.compose()["stop_grace_period"].removesuffix("s")) > timeout_s
    assert manifests.pod()["terminationGracePeriodSeconds"] > timeout_s
    unit = (DEPLOY / "semif-bento.service").read_text()
    assert "podman stop --ignore --time=90 semif-bento" in unit
    assert timeout_s < 90
