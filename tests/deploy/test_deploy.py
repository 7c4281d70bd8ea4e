"""The files that others run us by: they fit to each other, to the code, and to the tree.

No engine is needed: what can be wrong without one is looked at here.
"""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from koboshi.config import Config, load
from koboshi.config.platforms import WebConfig
from koboshi.runtime.host import drain_seconds
from koboshi.runtime.metric_table import METRICS
from scripts import dashboard_json
from tests.deploy.small_yaml import documents

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = documents((ROOT / "compose.yaml").read_text())[0]["services"]["koboshi"]
CLAIM, DEPLOYMENT, POLICY = documents((ROOT / "deploy" / "kubernetes" / "koboshi.yaml").read_text())
POD = DEPLOYMENT["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
RULES_FILE = ROOT / "deploy" / "prometheus" / "koboshi.rules.yaml"
RULES_TEST = ROOT / "tests" / "deploy" / "koboshi.rules.test.yaml"
RULES = documents(RULES_FILE.read_text())[0]
DEFAULTS = Config(home=Path("home"))
STOP_MARGIN_S = 30
"""What a stop may take beyond the drain: farewells, sends that are under way, the store."""


def instructions(name: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return [line.partition(" ")[2] for line in joined.splitlines() if line.startswith(f"{name} ")]


def variables() -> dict[str, str]:
    return dict(word.split("=", 1) for line in instructions("ENV") for word in line.split())


def test_the_page_can_be_had_by_taking_the_comment_signs_away() -> None:
    """Red before: the file then had a key twice, and no engine read it."""
    text = (ROOT / "compose.yaml").read_text()
    offered = re.compile(r"^( *)# ((?:  )?(?:ports:|- |KOBOSHI_).*)$", re.MULTILINE)
    service = documents(offered.sub(r"\1\2", text))[0]["services"]["koboshi"]

    assert service["ports"] == ["127.0.0.1:8642:8642"]
    told = {name: str(value) for name, value in service["environment"].items()}
    (web,) = load(Path("home"), None, told).channels
    assert isinstance(web, WebConfig)
    assert (web.host, web.public_url) == ("0.0.0.0", "http://localhost:8642")


# ── stopping ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "limit, told",
    [
        (COMPOSE["stop_grace_period"].rstrip("s"), COMPOSE["environment"]["KOBOSHI_GRACE_SECONDS"]),
        (POD["terminationGracePeriodSeconds"], CONTAINER["env"][0]["value"]),
    ],
    ids=["compose", "kubernetes"],
)
def test_a_stop_is_given_more_time_than_the_drain_takes(limit: Any, told: str) -> None:
    drain = DEFAULTS.gateway.drain_seconds

    assert int(limit) == int(told), "the gateway is told another limit than it has"
    assert int(limit) >= drain + STOP_MARGIN_S
    assert drain_seconds(drain, float(limit)) == drain, "the drain is cut short"


def test_it_is_asked_to_stop_in_a_way_that_it_hears() -> None:
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert instructions("ENTRYPOINT") == ['["koboshi"]'], "a shell would not pass the signal on"
    assert json.loads(instructions("CMD")[-1]) == ["run"]


def test_one_gateway_at_a_time_has_the_home() -> None:
    assert DEPLOYMENT["spec"]["replicas"] == 1
    assert DEPLOYMENT["spec"]["strategy"] == {"type": "Recreate"}
    assert CLAIM["spec"]["accessModes"] == ["ReadWriteOnce"]


# ── state ───────────────────────────────────────────────────────────────────────────────────────


def test_everything_durable_is_on_the_volume() -> None:
    (volume,) = instructions("VOLUME")

    assert COMPOSE["volumes"] == [f"koboshi:{volume}"]
    assert {"name": "state", "mountPath": volume} in CONTAINER["volumeMounts"]
    (state,) = [each for each in POD["volumes"] if each["name"] == "state"]
    assert state["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]
    assert Path(variables()["KOBOSHI_HOME"]).parent == Path(volume)
    assert Path(variables()["KOBOSHI__GATEWAY__WORKDIR"]).parent == Path(volume)


def test_the_settings_of_the_image_are_ones_that_we_know(tmp_path: Path) -> None:
    config = load(tmp_path, None, {**variables(), "KOBOSHI_HOME": str(tmp_path)})

    assert str(config.gateway.workdir) == variables()["KOBOSHI__GATEWAY__WORKDIR"]


def test_the_image_cannot_be_changed_while_it_runs() -> None:
    """Issue 15, item 7: what may be written is the volume and a bounded /tmp."""
    (tmp,) = [each for each in POD["volumes"] if each["name"] == "tmp"]

    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "tmp", "mountPath": "/tmp"} in CONTAINER["volumeMounts"]
    assert tmp["emptyDir"]["sizeLimit"]
    assert COMPOSE["read_only"] is True
    assert COMPOSE["tmpfs"][0].startswith("/tmp:size=")


def test_nothing_of_the_kernel_is_given_that_is_not_needed() -> None:
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert COMPOSE["cap_drop"] == ["ALL"]
    assert COMPOSE["security_opt"] == ["no-new-privileges:true"], "the engine's profile stays"
    assert POD["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & {*POD}


def test_commands_cannot_take_the_whole_machine() -> None:
    assert {"cpu", "memory", "ephemeral-storage"} <= {*CONTAINER["resources"]["limits"]}
    assert {"mem_limit", "pids_limit", "cpus"} <= {*COMPOSE}


def test_the_pod_reaches_public_addresses_and_nothing_of_the_cluster() -> None:
    spec = POLICY["spec"]
    names, public = spec["egress"]
    blocks = [ip_network(each["ipBlock"]["cidr"]) for each in public["to"]]
    closed = [ip_network(no) for each in public["to"] for no in each["ipBlock"]["except"]]

    assert spec["podSelector"] == DEPLOYMENT["spec"]["selector"]
    assert (spec["policyTypes"], spec["ingress"]) == (["Ingress", "Egress"], [])
    assert {each["port"] for each in names["ports"]} == {53}
    for address in ("10.96.0.1", "172.20.1.1", "192.168.1.1", "169.254.169.254", "fd00:ec2::254"):
        assert any(ip_address(address) in network for network in closed), address
    assert all(any(each != no and no.version == each.version for each in blocks) for no in closed)


def test_bubblewrap_is_in_the_image() -> None:
    assert "install --yes --no-install-recommends bubblewrap" in DOCKERFILE


def test_it_runs_as_no_one_special() -> None:
    assert instructions("USER") == ["koboshi"]
    assert f"--uid {POD['securityContext']['runAsUser']} " in DOCKERFILE
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert CONTAINER["securityContext"]["allowPrivilegeEscalation"] is False


# ── what is in the image ────────────────────────────────────────────────────────────────────────


INSTALLED = tuple(
    "runtime anthropic discord google matrix-e2e mcp media postgres slack web".split()
)
"""What the image can be built with."""


def test_what_is_copied_is_there_and_not_kept_out() -> None:
    copied = [line.split()[:-1] for line in instructions("COPY") if "--from" not in line]
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    named = (each for names in copied for each in names)
    for name in (each.replace("${EXTRAS}", extra) for each in named for extra in INSTALLED):
        assert (ROOT / name).exists(), name
        assert f"!{name}" in allowed, f"{name} is kept out by .dockerignore"


def test_requirements_are_hashed_and_no_index_is_named() -> None:
    assert "--require-hashes -r requirements/${EXTRAS}.txt" in DOCKERFILE
    assert "ARG EXTRAS=runtime" in DOCKERFILE
    assert "--no-deps --no-build-isolation" in DOCKERFILE
    assert "://" not in DOCKERFILE.replace("http://127.0.0.1", "")
    assert not re.search(r"--(?:index|extra|find)", DOCKERFILE)


def test_the_python_of_the_image_is_one_that_we_support() -> None:
    versions = set(re.findall(r"FROM python:([\d.]+)-slim", DOCKERFILE))
    project = (ROOT / "pyproject.toml").read_text()

    assert len(versions) == 1
    assert f"Python :: {versions.pop()}" in project


@pytest.mark.parametrize(
    "command, path",
    [
        (json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2]), "/readyz"),
        (CONTAINER["readinessProbe"]["exec"]["command"], "/readyz"),
        (CONTAINER["livenessProbe"]["exec"]["command"], "/healthz"),
        (CONTAINER["startupProbe"]["exec"]["command"], "/healthz"),
    ],
)
def test_health_is_asked_for_inside_where_it_is(command: list[str], path: str) -> None:
    compile(command[2], "probe", "exec")
    assert f"http://127.0.0.1:8642{path}" in command[2]


LINES = re.sub(r"\\\n\s*", " ", DOCKERFILE).splitlines()
"""One instruction each."""


def pip_commands() -> list[list[str]]:
    """What pip is told to do, without the name of the program."""
    steps = [step for run in instructions("RUN") for step in run.split("&&")]
    words = [shlex.split(step) for step in steps]
    return [each[1:] for each in words if each[0].endswith("/pip")]


def test_pip_understands_what_it_is_told() -> None:
    """Its own parser reads the options; nothing is fetched."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("the environment was made without pip")
    installs = [each for each in pip_commands() if each[0] == "install"]
    assert len(installs) == 3
    for arguments in pip_commands():
        read = subprocess.run(
            [sys.executable, "-m", "pip", *arguments, "--help"], capture_output=True, text=True
        )
        assert read.returncode == 0, read.stderr


def test_every_requirement_is_exact_and_has_hashes() -> None:
    text = (ROOT / "requirements" / "runtime.txt").read_text()
    wanted = re.sub(r"\\\n\s*", " ", text).splitlines()
    listed = [line for line in wanted if line.strip() and not line.lstrip().startswith("#")]

    assert len(listed) > 10
    assert all(re.match(r"[a-z0-9.\-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", each) for each in listed)
    names = {each.partition("==")[0] for each in listed}
    built_with = {"hatchling", "editables"}
    assert built_with <= names, "the second install has no build isolation"
    assert ["uninstall", "--yes", *sorted(built_with, reverse=True)] in pip_commands()


def test_the_layers_are_as_a_linter_wants_them() -> None:
    names = [line.split(" ")[0] for line in LINES if re.match(r"[A-Z]+ ", line)]

    assert all(re.search(r"FROM \S+:\d", line) for line in LINES if line.startswith("FROM "))
    assert "ADD" not in names, "COPY says what it does"
    assert "MAINTAINER" not in names
    assert not re.search(r"\bsudo\b|\bcurl\b|\bwget\b|chmod 777", DOCKERFILE)
    assert names.count("CMD") == names.count("ENTRYPOINT") == 1
    assert all(json.loads(instructions(name)[0]) for name in ("ENTRYPOINT", "CMD"))
    last_user = len(names) - 1 - names[::-1].index("USER")
    assert "RUN" not in names[last_user:], "nothing is made after the rights are given up"
    assert all(Path(each).is_absolute() for each in instructions("WORKDIR"))
    assert "--no-cache-dir" in " ".join(" ".join(each) for each in pip_commands())


def test_the_image_holds_no_secret() -> None:
    assert not [name for name in variables() if re.search(r"TOKEN|KEY|SECRET|PASSW", name)]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*" or "*" in ignored, "only what is named gets in"


# ── what is watched ─────────────────────────────────────────────────────────────────────────────


def known_metrics() -> set[str]:
    """As they are asked for: a histogram by its parts."""
    parts = ("_bucket", "_sum", "_count")
    return {
        f"{name}{part}"
        for name, told in METRICS.items()
        for part in (parts if told.kind == "histogram" else ("",))
    }


def labels_in(expression: str) -> Iterator[tuple[str, str]]:
    """Each metric with a label that it is asked for by."""
    for name, chosen in re.findall(r"\b(koboshi_[a-z_]+)\{([^}]*)\}", expression):
        for label in re.findall(r"(\w+)=", chosen):
            yield re.sub(r"_(?:bucket|sum|count)$", "", name), label


def test_the_dashboard_is_up_to_date() -> None:
    assert dashboard_json.PAGE.read_text() == dashboard_json.render(), "run `make docs-generated`"


@pytest.mark.parametrize(
    "expression",
    [
        *(expr for _, _, lines in dashboard_json.PANELS for expr, _ in lines),
        *(rule["expr"] for rule in RULES["groups"][0]["rules"]),
    ],
)
def test_only_metrics_that_exist_are_looked_at(expression: str) -> None:
    named = re.findall(r"\b(?:koboshi|process)_[a-z_]+\b", expression)

    assert named or expression.startswith("up{")
    assert set(named) <= known_metrics()
    assert all(label in METRICS[name].labels for name, label in labels_in(expression))


@pytest.mark.parametrize(
    "expression",
    [
        "koboshi_inbox_oldest_age_seconds > 120",
        "koboshi_outbox_oldest_age_seconds > 300",
        "koboshi_outbox_ambiguous > 0",
        "koboshi_turn_quarantines_total > 0",
        "increase(koboshi_unclean_boots_total[10m]) >= 3",
        "koboshi_db_backup_age_seconds > 93600",
        "increase(koboshi_lease_fenced_total[1h]) > 0",
        'increase(koboshi_turns_total{outcome="failed"}[15m]) >= 3',
        'koboshi_neighbour_up{neighbour="model"} == 0',
        "koboshi_adapter_up == 0",
    ],
)
def test_a_person_is_told_of_what_needs_them(expression: str) -> None:
    assert [rule for rule in RULES["groups"][0]["rules"] if expression in rule["expr"]]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_itself_fires_the_alerts_when_it_should() -> None:
    """Issue 13, C21: for failing turns, a failing model and a channel that is not heard."""
    for command in (["check", "rules", str(RULES_FILE)], ["test", "rules", str(RULES_TEST)]):
        ended = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
