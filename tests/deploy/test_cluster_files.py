"""Two gateways on one database: each has a home and a name, and one of them is always there."""

from pathlib import Path
from typing import Any

import pytest

from koboshi.config import load
from tests.deploy.small_yaml import documents

ROOT = Path(__file__).resolve().parent.parent.parent
SERVICE, BUDGET, SET, POLICY = documents(
    (ROOT / "deploy" / "kubernetes" / "koboshi-cluster.yaml").read_text()
)
ALONE = documents((ROOT / "deploy" / "kubernetes" / "koboshi.yaml").read_text())[1]
POD = SET["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
COMPOSE = documents((ROOT / "deploy" / "compose" / "cluster.yaml").read_text())[0]
GATEWAYS = ("a", "b")


def environment() -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in CONTAINER["env"]}


def test_two_gateways_have_a_home_each() -> None:
    assert (SET["kind"], SET["spec"]["replicas"]) == ("StatefulSet", 2)
    (claim,) = SET["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "state"
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    assert mounts["state"] == "/var/lib/koboshi"


def test_one_of_them_is_always_there() -> None:
    assert SET["spec"]["updateStrategy"] == {"type": "RollingUpdate"}
    assert BUDGET["spec"]["maxUnavailable"] == 1
    labels = SET["spec"]["template"]["metadata"]["labels"]
    assert BUDGET["spec"]["selector"]["matchLabels"] == labels
    assert SERVICE["spec"]["selector"] == labels
    assert SET["spec"]["serviceName"] == SERVICE["metadata"]["name"]


def test_a_node_is_named_as_its_pod() -> None:
    (node,) = (each for each in CONTAINER["env"] if each["name"] == "KOBOSHI_NODE")
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert environment()["KOBOSHI__GATEWAY__NODE"] == "$(KOBOSHI_NODE)"


def test_a_pod_of_the_cluster_is_closed_as_one_that_is_alone() -> None:
    alone = ALONE["spec"]["template"]["spec"]
    for key in ("securityContext", "terminationGracePeriodSeconds", "automountServiceAccountToken"):
        assert POD[key] == alone[key]
    for key in ("securityContext", "resources", "livenessProbe", "readinessProbe", "startupProbe"):
        assert CONTAINER[key] == alone["containers"][0][key]
    assert POLICY["spec"]["ingress"] == []


def test_the_password_is_in_a_file_that_is_the_gateways_alone() -> None:
    """libpq refuses one that a group can read, as a mounted secret is. None is in the address."""
    (first,) = POD["initContainers"]
    assert first["command"] == [
        *("install", "-m", "0600"),
        *("/run/secret/pgpass", environment()["PGPASSFILE"]),
    ]
    volumes = {each["name"]: each for each in POD["volumes"]}
    assert volumes["password"]["emptyDir"]["medium"] == "Memory"
    for name in GATEWAYS:
        given = COMPOSE["services"][name]
        assert given["environment"]["PGPASSFILE"] == f"/run/secrets/{given['secrets'][0]}"


@pytest.mark.parametrize("name", GATEWAYS)
def test_services_of_compose_have_their_own_volumes_and_names(name: str) -> None:
    given = COMPOSE["services"][name]
    assert given["environment"]["KOBOSHI__GATEWAY__NODE"] == name
    assert given["volumes"] == [f"{name}:/var/lib/koboshi"]
    assert name in COMPOSE["volumes"]
    assert given["build"]["args"]["EXTRAS"] == "postgres"
    assert given["stop_grace_period"].rstrip("s") == given["environment"]["KOBOSHI_GRACE_SECONDS"]
    other = COMPOSE["services"][GATEWAYS[1 - GATEWAYS.index(name)]]
    own = ("environment", "volumes")
    assert {k: v for k, v in given.items() if k not in own} == {
        k: v for k, v in other.items() if k not in own
    }


@pytest.mark.parametrize("file", ["kubernetes", "compose"])
def test_the_settings_are_ones_that_we_know(file: str, tmp_path: Path) -> None:
    given = environment() if file == "kubernetes" else COMPOSE["services"]["a"]["environment"]
    variables = {name: str(value) for name, value in given.items() if name.startswith("KOBOSHI__")}
    config = load(tmp_path, None, variables, needs_secrets=False)
    assert config.store.url.startswith("postgresql://koboshi@")
