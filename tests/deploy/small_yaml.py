"""The YAML of our deployment files, which is kept simple: whatever is not is refused."""

import json
import re
from typing import Any

_KEY = re.compile(r"(?P<key>[A-Za-z_][\w./-]*):(?: (?P<rest>.+))?")


def documents(text: str) -> list[Any]:
    """Each document as plain values."""
    return [_parse(part) for part in re.split(r"^---\n", text, flags=re.MULTILINE)]


def _parse(text: str) -> Any:
    lines = [
        (len(line) - len(line.lstrip()), line.strip())
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    value, left = _block(lines, lines[0][0])
    assert not left, left
    return value


def _block(lines: list[tuple[int, str]], indent: int) -> tuple[Any, list[tuple[int, str]]]:
    return (_list if lines[0][1].startswith("- ") else _map)(lines, indent)


def _list(lines: list[tuple[int, str]], indent: int) -> tuple[list[Any], list[tuple[int, str]]]:
    found: list[Any] = []
    while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
        first = lines[0][1][2:]
        if _KEY.fullmatch(first):
            value, lines = _map([(indent + 2, first), *lines[1:]], indent + 2)
        else:
            value, lines = _scalar(first), lines[1:]
        found.append(value)
    return found, lines


def _map(lines: list[tuple[int, str]], indent: int) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent:
        match = _KEY.fullmatch(lines[0][1])
        assert match, f"no key: {lines[0][1]}"
        key, rest, lines = match["key"], match["rest"], lines[1:]
        assert key not in found, f"twice: {key}"
        if rest is not None:
            found[key] = _scalar(rest)
        elif lines and (lines[0][0] > indent or lines[0][1].startswith("- ")):
            found[key], lines = _block(lines, lines[0][0])
        else:
            found[key] = None
    assert not lines or lines[0][0] < indent, f"indented by surprise: {lines[0]}"
    return found, lines


def _scalar(text: str) -> Any:
    if text.startswith(('"', "[")) or re.fullmatch(r"-?\d+|true|false", text):
        return json.loads(text)
    assert not re.match(r"[&*!|>%@`{']", text), f"not simple: {text}"
    assert ": " not in text, f"not simple: {text}"
    assert " #" not in text, f"not simple: {text}"
    return text
