"""Look for known vulnerabilities in what we locked, with pip-audit from `.venv-audit`.

Ends with 1 if one is found, else with 0. A database that cannot be reached is said, and is no
error: a build without internet must not fail for that. pip-audit takes a package that its source
does not know for one without vulnerabilities, and a mirror without a database knows none. So a
source counts only if it knew at least one package.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".venv-audit" / "bin" / "pip-audit"
SHIPPED = ("runtime", "anthropic", "google", "mcp", "postgres")
ALSO_USED = ("installer", "dev")
SOURCES = ("osv", "pypi")
SECONDS_MAX = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    looked_at: frozenset[str]
    unknown: frozenset[str]
    """What the source does not know: neither well nor vulnerable."""
    vulnerable: tuple[str, ...]


def findings(report: str) -> Findings:
    """What pip-audit's JSON says. Raises ValueError if it is none."""
    listed = json.loads(report)["dependencies"]
    audited = [each for each in listed if "skip_reason" not in each]
    return Findings(
        looked_at=frozenset(f"{each['name']} {each['version']}" for each in audited),
        unknown=frozenset(each["name"] for each in listed if "skip_reason" in each),
        vulnerable=tuple(
            f"{each['name']} {each['version']}: {one['id']}"
            f" (mended in {', '.join(one['fix_versions']) or 'no version yet'})"
            for each in audited
            for one in each["vulns"]
        ),
    )


def ask(source: str, names: Sequence[str], osv_url: str) -> Findings | None:
    """None if the source cannot be reached or has no database."""
    files = [word for name in names for word in ("-r", str(ROOT / f"requirements/{name}.txt"))]
    options = ["--vulnerability-service", source, "--disable-pip", "--require-hashes"]
    options += ["--progress-spinner=off", "--format=json"]
    options += ["--osv-url", osv_url] if osv_url and source == "osv" else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        try:
            subprocess.run(
                [str(PROGRAM), *options, "--output", str(report), *files],
                capture_output=True,
                timeout=SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        # It is written when all was asked, with or without vulnerabilities; not after an error.
        if not report.exists() or not report.stat().st_size:
            return None
        found = findings(report.read_text(encoding="utf-8"))
    return found if found.looked_at else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osv-url", default="", help="another server of the OSV interface")
    wish = parser.parse_args()
    for source in SOURCES:
        # One small file tells whether it can be reached at all.
        if ask(source, ["installer"], wish.osv_url) is None:
            continue
        found = ask(source, [*SHIPPED, *ALSO_USED], wish.osv_url)
        if found is not None:
            return _tell(source, found)
    print("audit: no database of vulnerabilities can be reached from here; nothing was looked at")
    return 0


def _tell(source: str, found: Findings) -> int:
    print(f"audit: {source} knows {len(found.looked_at)} of our locked packages")
    if found.unknown:
        print(f"audit: it does not know {', '.join(sorted(found.unknown))}")
    for line in found.vulnerable:
        print(f"audit: {line}")
    print(f"audit: {len(found.vulnerable)} known vulnerabilities")
    return 1 if found.vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
