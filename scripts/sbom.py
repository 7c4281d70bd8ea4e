"""Write the list of parts, `build/koboshi-<version>.cdx.json`, in the form of CycloneDX 1.6.

Everything is read from the locked requirements: name, version, hashes, and who needs it (`# via`).
So the list says what an installation by hash gets, whatever is installed here. Only licences come
from installed packages. The same locks and the same environment give the same bytes.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from koboshi import __version__

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = tuple(sorted(_PROJECT["optional-dependencies"]))
"""Each has a lock of its own."""
BUILT_WITH = ("hatchling", "editables")
ITSELF = "koboshi"
_PIN = re.compile(r"(?P<name>[a-z0-9.\-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>.+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    needed_by: frozenset[str]

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(text: str) -> Iterator[Part]:
    """The parts of a requirements file. Raises ValueError for a line that is not a pin."""
    for entry in re.split(r"\n(?=\S)", text.strip()):
        first, *rest = (line.strip().removesuffix("\\").strip() for line in entry.splitlines())
        found = _PIN.fullmatch(first)
        if found is None:
            raise ValueError(f"not a pinned requirement: {first}")
        via = next((line.removeprefix("# via ") for line in rest if line.startswith("# via")), "")
        yield Part(
            name=found["name"],
            version=found["version"],
            marker=found["marker"] or "",
            hashes=tuple(re.findall(r"sha256:([0-9a-f]{64})", entry)),
            needed_by=frozenset(name.split()[0] for name in via.split(", ") if name[:1] != "-"),
        )


def gathered() -> tuple[dict[str, Part], frozenset[str]]:
    """All parts by name, and the names of those that every installation has."""
    parts: dict[str, Part] = {}
    always: frozenset[str] = frozenset()
    for kind in ("runtime", *EXTRAS):
        for part in locked((REQUIREMENTS / f"{kind}.txt").read_text(encoding="utf-8")):
            known = parts.get(part.name, part)
            if known.version != part.version:
                raise ValueError(f"{part.name} is locked twice: {known.version}, {part.version}")
            parts[part.name] = Part(
                name=part.name,
                version=part.version,
                marker=known.marker if kind == "runtime" else known.marker and part.marker,
                hashes=part.hashes,
                needed_by=known.needed_by | part.needed_by,
            )
        if kind == "runtime":
            always = frozenset(parts)
    return _without_build(parts), always


def _without_build(parts: dict[str, Part]) -> dict[str, Part]:
    """What only builds Koboshi is not a part of it."""
    kept = {name: part for name, part in parts.items() if name not in BUILT_WITH}
    while True:
        used = {name: part for name, part in kept.items() if part.needed_by & {ITSELF, *kept}}
        if len(used) == len(kept):
            return used
        kept = used


def document(parts: dict[str, Part], always: frozenset[str]) -> dict[str, Any]:
    """The list as CycloneDX has it."""
    itself = f"pkg:pypi/{ITSELF}@{__version__}"
    components = [_component(part, part.name in always) for _, part in sorted(parts.items())]
    names = json.dumps(components, sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, itself + names)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": itself,
                "name": ITSELF,
                "version": __version__,
                "purl": itself,
                "licenses": [{"license": {"id": "MIT"}}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": itself, "dependsOn": _needs(ITSELF, parts.values())},
            *(
                {"ref": part.reference, "dependsOn": _needs(part.name, parts.values())}
                for _, part in sorted(parts.items())
            ),
        ],
    }


def _component(part: Part, is_always: bool) -> dict[str, Any]:
    properties = [{"name": "koboshi:locked:sha256", "value": each} for each in part.hashes]
    if part.marker:
        properties.append({"name": "koboshi:locked:only-if", "value": part.marker})
    return {
        "type": "library",
        "bom-ref": part.reference,
        "name": part.name,
        "version": part.version,
        "scope": "required" if is_always else "optional",
        "purl": part.reference,
        **_licence(part),
        "properties": properties,
    }


def _licence(part: Part) -> dict[str, Any]:
    """As the package itself says, where this very version is installed."""
    try:
        told = metadata.metadata(part.name)
    except metadata.PackageNotFoundError:
        return {}
    expression = next(iter(told.get_all("License-Expression") or ()), "")
    if told["Version"] != part.version or not expression:
        return {}
    return {"licenses": [{"expression": expression}]}


def _needs(name: str, parts: Iterable[Part]) -> list[str]:
    return sorted(part.reference for part in parts if name in part.needed_by)


def main() -> int:
    file = ROOT / "build" / f"koboshi-{__version__}.cdx.json"
    file.parent.mkdir(exist_ok=True)
    parts, always = gathered()
    file.write_text(json.dumps(document(parts, always), indent=2) + "\n", encoding="utf-8")
    print(f"sbom: {len(parts)} parts in {file.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
