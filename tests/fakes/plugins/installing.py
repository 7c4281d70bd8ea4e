"""Distributions for the tests: a module and the metadata that an installer would write."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent / "example"
EXAMPLE_CHANNEL = EXAMPLE.with_name("example_channel")

Groups = Mapping[str, Mapping[str, str]]


def install(folder: Path, name: str, version: str, groups: Groups, **modules: str) -> None:
    """Put modules into a folder, and beside them what declares their entry points."""
    dist_info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    dist_info.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (dist_info / "METADATA").write_text(metadata, encoding="utf-8")
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{point} = {value}" for point, value in points.items()))
    ]
    (dist_info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")


def install_example(folder: Path, example: Path = EXAMPLE) -> None:
    """Install the example of docs/writing-a-tool.md, or another one, as it stands."""
    project = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (module,) = example.glob("koboshi_*.py")
    modules = {module.stem: module.read_text(encoding="utf-8")}
    install(folder, project["name"], project["version"], project["entry-points"], **modules)
