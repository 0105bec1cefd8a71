"""A gateway before two engine servers, twice deployed: they fit each other and the service."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from semif_bento import __version__
from semif_bento.cli.environment import read_env_file
from semif_bento.settings import Settings
from tests.deploy import manifests
from tests.deploy.manifests import DEPLOY, PROJECT

GATEWAY = read_env_file(PROJECT / "configs" / "gateway.env")


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "scale-out.yaml").read_text())


def pod(kind: str) -> dict[str, Any]:
    return manifests.kubernetes("scale-out.yaml", kind)["spec"]["template"]["spec"]


def container(kind: str) -> dict[str, Any]:
    (found,) = pod(kind)["containers"]
    return found


def environ(name: str) -> dict[str, str]:
    if name == "compose":
        return GATEWAY | compose()["services"]["gateway"]["environment"]
    return {entry["name"]: entry["value"] for entry in container("Deployment")["env"]}


def engine_arguments(name: str) -> dict[str, str]:
    if name == "compose":
        words = compose()["services"]["engine-0"]["command"]
    else:
        words = container("StatefulSet")["args"]
    return dict(word.removeprefix("--").partition("=")[::2] for word in words)


def settings(name: str, tmp_path: Path) -> Settings:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    given = environ(name)
    assert "SEMIF_API_TOKEN" not in given
    return Settings.from_env(given | {"SEMIF_API_TOKEN_FILE": str(token)})


@pytest.mark.parametrize("name", ["compose", "kubernetes"])
def test_the_servers_serve_what_the_gateway_expects(name: str, tmp_path: Path) -> None:
    read, engine = settings(name, tmp_path), engine_arguments(name)
    assert read.backend == "vllm"
    assert engine["model"] == (read.backend_model or read.model)
    assert engine["revision"] == engine["tokenizer-revision"] == read.revision
    assert engine["dtype"] == read.dtype
    assert int(engine["max-model-len"]) > read.max_tokens
    assert read.backend_timeout_s < read.timeout_s
    ports = {urlsplit(url).port for url in read.backend_urls}
    assert ports == {int(engine["port"])}


def test_compose_names_its_own_servers_and_opens_only_the_gateway(tmp_path: Path) -> None:
    services, networks = compose()["services"], compose()["networks"]
    read = settings("compose", tmp_path)
    hosts = {urlsplit(url).hostname for url in read.backend_urls}
    assert hosts == set(services) - {"gateway"} == set(services["gateway"]["depends_on"])
    assert networks["engines"] == {"internal": True}
    for host in hosts:
        assert services[host]["networks"] == ["engines"]
        assert "ports" not in services[host]
    cards = [
        services[host]["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"]
        for host in hosts
    ]
    assert sorted(cards) == [["${GPU_0:-0}"], ["${GPU_1:-1}"]]


def test_kubernetes_names_its_own_servers_and_lets_only_gateways_ask_them(tmp_path: Path) -> None:
    engines = manifests.kubernetes("scale-out.yaml", "StatefulSet")
    name, service = engines["metadata"]["name"], engines["spec"]["serviceName"]
    expected = [f"{name}-{n}.{service}" for n in range(engines["spec"]["replicas"])]
    read = settings("kubernetes", tmp_path)
    assert [urlsplit(url).hostname for url in read.backend_urls] == expected
    policy = manifests.kubernetes("scale-out.yaml", "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"] == engines["spec"]["selector"]["matchLabels"]
    [rule] = policy["ingress"]
    [source] = rule["from"]
    gateways = manifests.kubernetes("scale-out.yaml", "Deployment")["spec"]
    assert source["podSelector"]["matchLabels"] == gateways["selector"]["matchLabels"]


def test_the_gateway_is_fenced_in_and_needs_no_card(tmp_path: Path) -> None:
    service = compose()["services"]["gateway"]
    assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
    assert "deploy" not in service
    assert container("Deployment")["image"] == f"semif-bento:{__version__}"
    assert "nvidia.com/gpu" not in container("Deployment")["resources"]["limits"]
    assert container("StatefulSet")["resources"]["limits"]["nvidia.com/gpu"] == "1"
    for kind in ("Deployment", "StatefulSet"):
        assert container(kind)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            checked = container(kind)[probe]
            assert 0 < checked["timeoutSeconds"] <= checked["periodSeconds"]
    timeout_s = settings("kubernetes", tmp_path).timeout_s
    assert pod("Deployment")["terminationGracePeriodSeconds"] > timeout_s
    assert int(service["stop_grace_period"].removesuffix("s")) > timeout_s
