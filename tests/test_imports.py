"""Who may import whom: the contracts in pyproject.toml hold, and each of them bites."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "koboshi"

KERNEL_DEPTH_MAX = 6

# What the domain may use of the standard library: types, values and text; nothing reads the world.
PURE = frozenset(
    "__future__ abc base64 bisect collections contextlib copy dataclasses datetime decimal difflib "
    "enum errno fnmatch fractions functools hashlib heapq html itertools json math operator re "
    "string textwrap types typing unicodedata".split()
)

PACKAGES = (
    "agent boundary channels/telegram channels/web cli commands control dashboard domain kernel "
    "models ports processes runner runtime stores/postgres stores/sqlite tools torture"
).split()

# An import that must be refused: where it stands, what it says, which contract refuses it.
PLANTED = [
    ("domain/turn.py", "import koboshi.ports.store", "layers"),
    ("ports/store.py", "import koboshi.runtime.turn", "layers"),
    ("runtime/turn.py", "import koboshi.app", "layers"),
    ("runtime/turn.py", "import koboshi.config", "layers"),
    ("runtime/turn.py", "import koboshi.stores.sqlite.store", "no-adapter"),
    ("runtime/turn.py", "import koboshi.channels.web.codec", "no-adapter"),
    ("control/read.py", "import koboshi.kernel.accept", "no-adapter"),
    ("control/read.py", "import koboshi.runtime.turn", "layers"),
    ("processes/runners.py", "import koboshi.runtime.turn", "layers"),
    ("kernel/accept.py", "import koboshi.stores.sqlite.store", "stores-below"),
    ("kernel/accept.py", "import apsw", "kernel"),
    ("dashboard/app.py", "import koboshi.runtime.turn", "layers"),
    ("stores/sqlite/store.py", "import koboshi.channels.web", "layers"),
    ("agent/prompt.py", "import koboshi.commands", "layers"),
    ("boundary/view.py", "import koboshi.processes.files", "layers"),
    ("boundary/view.py", "import koboshi.config.sections", "layers"),
    ("runner/main.py", "import koboshi.domain", "layers"),
    ("surprise.py", "", "layers"),
    ("tools/ask.py", "import koboshi.agent", "adapters"),
    ("control/read.py", "import koboshi.dashboard.app", "adapters"),
    ("dashboard/app.py", "import koboshi.kernel.accept", "no-adapter"),
    ("dashboard/app.py", "import koboshi.commands.run", "page"),
    ("config.py", "import koboshi.ports.store", "config"),
    ("logs.py", "import koboshi.runtime.turn", "config"),
    ("cli/run.py", "import koboshi.stores.sqlite", "one-chooser"),
    ("__main__.py", "import koboshi.stores.sqlite", "one-chooser"),
    ("app.py", "import koboshi.torture", "layers"),
    ("torture/trial.py", "import koboshi.cli.run", "layers"),
    ("torture/check.py", "import koboshi.domain.turn", "torture"),
    ("torture/remains.py", "import koboshi.stores.sqlite.store", "torture"),
    ("stores/postgres/store.py", "import koboshi.stores.sqlite", "stores"),
    ("channels/web/codec.py", "import koboshi.channels.telegram", "channels"),
    ("domain/turn.py", "import time", "domain"),
    ("domain/turn.py", "import msgspec", "domain"),
    ("ports/store.py", "import apsw", "ports"),
    ("runtime/turn.py", "import koboshi.runtime.calls", "cycles"),
]

BETWEEN = "-- the next --\n"

# The linter, once for each folder and contract that it is told, in a process of its own.
LOOKS_AT_ALL = f"""
import json, os, sys
from importlinter.cli import lint_imports
for folder, contract in json.load(sys.stdin):
    if not (child := os.fork()):
        os.chdir(folder)
        code = lint_imports(sys.argv[1], (contract,), no_cache=True, no_logo=True)
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    print("exit", os.waitstatus_to_exitcode(status), flush=True)
    print({BETWEEN!r}, end="", flush=True)
"""


def test_the_contracts_are_kept() -> None:
    verdict = lint_imports(ROOT / "pyproject.toml", ROOT / "src")

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_the_contracts_are_kept_by_the_allowed_imports(tree: Path) -> None:
    verdict = lint_imports(ROOT / "pyproject.toml", tree)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_a_project_without_the_later_packages_is_accepted(tmp_path: Path) -> None:
    plant(tmp_path, "__init__.py")
    plant(tmp_path, "__main__.py")

    verdict = lint_imports(ROOT / "pyproject.toml", tmp_path)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_each_forbidden_import_is_refused(
    tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One after the other in copies of the tree. One program looks at all of them, because to start
    it takes longer than to look."""
    asked = []
    for number, (module, line, contract) in enumerate(PLANTED):
        copy = tmp_path_factory.mktemp("planted") / f"{number}"
        shutil.copytree(tree, copy)
        plant(copy, module, line)
        asked.append((str(copy), contract))

    said = subprocess.run(
        [sys.executable, "-c", LOOKS_AT_ALL, str(ROOT / "pyproject.toml")],
        input=json.dumps(asked),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 0, said.stderr
    verdicts = said.stdout.split(BETWEEN)
    assert len(verdicts) == len(PLANTED) + 1, said.stderr
    kept = {
        planted: verdict
        for planted, verdict in zip(PLANTED, verdicts, strict=False)
        if "0 kept, 1 broken" not in verdict or not verdict.endswith("exit 1\n")
    }
    assert kept == {}


def test_the_domain_uses_only_the_pure_part_of_the_standard_library() -> None:
    # cronsim only reckons; the zone is passed in.
    assert not list(imports_outside(PACKAGE / "domain", PURE | {"koboshi", "cronsim"}))


def test_the_runner_uses_only_the_standard_library_and_itself() -> None:
    others = imports_outside(PACKAGE / "runner", sys.stdlib_module_names)
    assert not [each for each in others if not each.endswith("imports koboshi.runner")]


def test_the_kernel_is_at_most_six_modules_deep() -> None:
    """Issue 14, point 1: a reader of a verb is at most five hops from the transaction."""
    chain = longest_chain(PACKAGE / "kernel")

    assert len(chain) <= KERNEL_DEPTH_MAX, " imports ".join(chain)


def test_a_chain_that_is_too_deep_is_found(tmp_path: Path) -> None:
    """Issue 14, point 1: the test of the test, with each way to write an import."""
    ways = ("import {}", "from {} import verb", "from koboshi.kernel import {}")
    for depth in range(1, 8):
        way = ways[depth % 3].format(
            f"m{depth - 1}" if depth % 3 == 2 else f"koboshi.kernel.m{depth - 1}"
        )
        plant(tmp_path, f"kernel/m{depth}.py", way if depth > 1 else "import koboshi.domain.turn")

    chain = longest_chain(tmp_path / "koboshi" / "kernel")

    assert chain == [f"m{depth}" for depth in range(7, 0, -1)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small koboshi that uses every import the table allows."""
    plant(tmp_path, "__init__.py")
    for package in PACKAGES:
        for folder in [package, *(str(each) for each in Path(package).parents)][:-1]:
            plant(tmp_path, f"{folder}/__init__.py")
    plant(tmp_path, "__main__.py", "import koboshi.cli.run")
    plant(tmp_path, "cli/run.py", "import koboshi.app, koboshi.config, koboshi.ports.store")
    plant(tmp_path, "cli/torture.py", "import koboshi.torture.trial")
    plant(tmp_path, "torture/trial.py", "import koboshi.stores.faults, anyio")
    adapters = ["channels.web", "dashboard.app", "runtime.turn", "stores.sqlite.store", "tools.ask"]
    plant(tmp_path, "app.py", *(f"import koboshi.{each}" for each in ["config", "logs", *adapters]))
    plant(tmp_path, "config.py", "import koboshi.domain.turn, os, tomllib")
    plant(tmp_path, "logs.py", "import koboshi.domain.turn, structlog")
    plant(tmp_path, "runtime/turn.py", "import koboshi.agent.prompt, koboshi.commands, anyio")
    plant(tmp_path, "runtime/calls.py", "import koboshi.runtime.turn")
    plant(tmp_path, "dashboard/app.py", "import koboshi.control.read, starlette")
    plant(tmp_path, "commands/run.py", "import koboshi.ports.store")
    plant(tmp_path, "stores/faults.py")
    plant(tmp_path, "kernel/accept.py", "import koboshi.ports.store, msgspec")
    plant(tmp_path, "control/read.py", "import koboshi.ports.store")
    plant(tmp_path, "processes/runners.py", "import koboshi.ports.store, os")
    plant(tmp_path, "runtime/gateway.py", "import koboshi.control.read, koboshi.processes.runners")
    plant(tmp_path, "stores/sqlite/store.py", "import koboshi.kernel.accept, apsw, time")
    plant(tmp_path, "stores/postgres/store.py", "import koboshi.stores.faults")
    plant(tmp_path, "channels/web/codec.py", "import koboshi.domain.turn, msgspec")
    plant(tmp_path, "tools/ask.py", "import koboshi.ports.store")
    plant(tmp_path, "agent/prompt.py", "import koboshi.ports.store")
    plant(tmp_path, "ports/store.py", "import koboshi.domain.turn, typing")
    plant(tmp_path, "domain/turn.py", "import dataclasses, enum, koboshi.domain.ids")
    plant(tmp_path, "domain/ids.py", "import typing")
    plant(tmp_path, "runner/main.py", "import os, subprocess")
    return tmp_path


def plant(root: Path, module: str, *lines: str) -> None:
    path = root / "koboshi" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def lint_imports(config: Path, sources: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the linter over the `koboshi` below `sources`, whichever koboshi is installed."""
    command = shutil.which("lint-imports", path=Path(sys.executable).parent)
    assert command, "lint-imports is not installed beside this Python; run `make test`"
    return subprocess.run(
        [command, "--no-cache", "--no-logo", "--config", str(config), *options],
        cwd=sources,
        env=os.environ | {"PYTHONPATH": str(sources), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def longest_chain(folder: Path) -> list[str]:
    """The modules of a flat package along its longest chain of imports, from the top down."""
    modules = {path.stem: path for path in folder.glob("*.py")}
    package = f"koboshi.{folder.name}"

    def imported(path: Path) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {str(node.module), *(f"{node.module}.{each.name}" for each in node.names)}
        below = {each.removeprefix(f"{package}.").partition(".")[0] for each in found}
        return {each for each in below if f"{package}.{each}" in found and each in modules}

    @cache
    def chain(module: str) -> tuple[str, ...]:
        below = [chain(each) for each in sorted(imported(modules[module]) - {module})]
        return (module, *max([(), *below], key=len))

    chains = [chain(module) for module in sorted(modules)]
    deepest = max(chains, key=len)
    return list(deepest)


def imports_outside(folder: Path, allowed: frozenset[str]) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import():
                    modules = [alias.name for alias in node.names]
                case ast.ImportFrom():
                    modules = [node.module or ""]
                case _:
                    continue
            for module in modules:
                if module.partition(".")[0] not in allowed:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: imports {module}"
