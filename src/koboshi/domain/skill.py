"""Skills: a folder each with a `SKILL.md`, which says how something is done. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from koboshi.domain.text import plain

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SKILL_FILE = "SKILL.md"
DESCRIPTION_CHARS_MAX = 300
INDEX_CHARS_MAX = 6_000
_FIELD = re.compile(r"([A-Za-z_-]+):[ \t]*(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    """The name of its folder: so it is asked for."""
    description: str


def skill_of(folder: str, content: str) -> Skill:
    """A skill, as the lines above its text describe it; else by the first line that says
    something."""
    head, body = _head_of(content)
    described = head.get("description", "") or next(
        (line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), ""
    )
    words = " ".join(plain(described).split())
    return Skill(name=folder, description=words[:DESCRIPTION_CHARS_MAX])


def _head_of(content: str) -> tuple[dict[str, str], str]:
    """The fields between the first two lines of dashes, and what follows. A value may go on in
    lines that are indented, as YAML folds them."""
    lines = content.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return {}, content
    fields: dict[str, str] = {}
    name = ""
    for place, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return fields, "\n".join(lines[place + 1 :])
        if found := _FIELD.match(line):
            name, value = found[1].casefold(), found[2].strip()
            fields[name] = "" if value in (">", "|", ">-", "|-") else value.strip("\"'")
        elif name and line.startswith((" ", "\t")):
            fields[name] = f"{fields[name]} {line.strip()}".strip()
    return {}, content


def index_of(skills: Sequence[Skill]) -> str:
    """A line for each skill, as many as there is room for."""
    lines: list[str] = []
    room = INDEX_CHARS_MAX
    for place, skill in enumerate(skills):
        line = f"- {skill.name}: {skill.description}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"({len(skills) - place} more are not listed)")
            break
        lines.append(line)
    return "\n".join(lines)
