"""What we are made of: locked with hashes, listed, and looked up where that is possible."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from scripts import audit, sbom
from tests.harness.tally import WANTS_ALL

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = (ROOT / "pyproject.toml").read_text()
INSTALL_S_MAX = 300
CHECK_S_MAX = 200
VALIDATE = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(None if wrong is None else str(wrong))
"""


@pytest.fixture(scope="module")
def auditor() -> Path:
    """Its environment, made once for a clone."""
    if not WANTS_ALL:
        pytest.skip("`make torture` does it: it installs pip-audit")
    made = subprocess.run(
        [ROOT / "scripts" / "side_environment.sh", "audit"],
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"pip-audit cannot be had:\n{made.stderr[-2000:]}")
    return ROOT / ".venv-audit" / "bin"


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.stem)
def test_every_lock_is_exact_hashed_and_names_no_index(file: Path) -> None:
    """Issue 15, item 8: the extras, pip and the programs beside us, too."""
    parts = list(sbom.locked(file.read_text()))

    assert parts
    assert all(part.hashes for part in parts)
    assert "://" not in file.read_text()


def test_the_pip_of_the_environment_is_the_locked_one() -> None:
    """Issue 15, item 8: the pip that comes with a Python is as old as that."""
    try:
        found = version("pip")
    except PackageNotFoundError:
        pytest.skip("uv made the environment, and has put no pip there")
    (locked,) = sbom.locked((ROOT / "requirements" / "installer.txt").read_text())

    assert (locked.name, locked.version) == ("pip", found)


def test_every_extra_has_a_lock_that_agrees_with_the_others() -> None:
    parts, always = sbom.gathered()  # raises if one is missing, or two locks disagree

    assert {"anthropic", "discord", "google", "mcp", "postgres", "slack"} <= {*sbom.EXTRAS}

    assert {"anyio", "apsw", "click"} <= always
    assert {"mcp", "anthropic", "google-genai"} <= {*parts} - always
    assert not {"hatchling", "editables", "pytest"} & {*parts}


def test_the_list_of_parts_hangs_together() -> None:
    made = sbom.document(*sbom.gathered())
    known = {made["metadata"]["component"]["bom-ref"]}
    known |= {each["bom-ref"] for each in made["components"]}
    needed = {ref for each in made["dependencies"] for ref in each["dependsOn"]}

    assert {each["ref"] for each in made["dependencies"]} == known
    assert needed == known - {made["metadata"]["component"]["bom-ref"]}, "each is needed by one"
    assert made == sbom.document(*sbom.gathered()), "the same locks give the same list"


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_S_MAX + CHECK_S_MAX)
def test_the_list_of_parts_is_what_cyclonedx_wants(auditor: Path) -> None:
    text = json.dumps(sbom.document(*sbom.gathered()))

    checked = subprocess.run(
        [auditor / "python", "-c", VALIDATE],
        input=text,
        capture_output=True,
        text=True,
        timeout=CHECK_S_MAX,
    )

    assert (checked.returncode, checked.stderr.strip()) == (0, "")


# ── the audit ───────────────────────────────────────────────────────────────────────────────────


def test_a_source_that_knows_nothing_is_not_taken_for_good_news() -> None:
    """pip-audit itself says "no known vulnerabilities" of a mirror that has no database."""
    report = {"dependencies": [{"name": "pip", "skip_reason": "not found"}], "fixes": []}

    found = audit.findings(json.dumps(report))

    assert (found.looked_at, found.unknown) == (frozenset(), frozenset({"pip"}))


@contextmanager
def osv(vulnerable: str) -> Iterator[str]:
    """A server of the OSV interface that knows one vulnerability, on loopback."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known: list[Any] = []
            if asked["package"]["name"] == vulnerable:
                known = [{"id": "TEST-1", "summary": "bad", "details": "bad", "affected": []}]
            body = json.dumps({"vulns": known} if known else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_S_MAX + CHECK_S_MAX)
@pytest.mark.usefixtures("auditor")
@pytest.mark.parametrize("name, is_found", [("apsw", True), ("left-pad", False)])
def test_a_known_vulnerability_is_found_in_the_locks(name: str, is_found: bool) -> None:
    with osv(name) as url:
        found = audit.ask("osv", audit.SHIPPED, url)

    assert found is not None
    assert len(found.looked_at) > 50
    assert [name in line and "TEST-1" in line for line in found.vulnerable] == [True] * is_found


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_S_MAX + CHECK_S_MAX)
@pytest.mark.usefixtures("auditor")
def test_a_database_out_of_reach_is_none() -> None:
    with osv("apsw") as url:
        pass

    assert audit.ask("osv", ["installer"], url) is None
