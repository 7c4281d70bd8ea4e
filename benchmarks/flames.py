"""Stacks of samples: read, counted, and drawn as a flame graph."""

from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias
from zlib import crc32

Stacks: TypeAlias = Counter[tuple[str, ...]]
"""How often each stack was seen, the outermost function first."""

WIDTH, LINE, LETTER = 1600, 17, 6.6
NARROWEST = 0.4
"""What would be narrower is not drawn."""


def read_folded(text: str) -> Stacks:
    """Lines such as `outer;inner 12`."""
    stacks: Stacks = Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        if frames and count.isdecimal():
            stacks[tuple(frames.split(";"))] += int(count)
    return stacks


def fold_perf(script: str) -> Stacks:
    """The output of `perf script`: a sample is the name of a thread, then its frames, the innermost
    first, then an empty line."""
    stacks: Stacks = Counter()
    thread, frames = "", list[str]()
    for line in [*script.splitlines(), ""]:
        if line.startswith("\t"):
            _, _, rest = line.strip().partition(" ")
            frames.append(rest.strip())
        elif line:
            thread = line.strip().rstrip(":")
        elif thread:
            stacks[(thread, *reversed(frames))] += 1
            thread, frames = "", []
    return stacks


def own_times(stacks: Stacks) -> list[tuple[str, float]]:
    """The share of each function in which samples ended, largest first."""
    found: Counter[str] = Counter()
    for stack, count in stacks.items():
        found[stack[-1]] += count
    return _as_shares(found, stacks)


def shares(stacks: Stacks) -> list[tuple[str, float]]:
    """The share of samples that had each function somewhere, largest first."""
    found: Counter[str] = Counter()
    for stack, count in stacks.items():
        for frame in set(stack):
            found[frame] += count
    return _as_shares(found, stacks)


def _as_shares(found: Counter[str], stacks: Stacks) -> list[tuple[str, float]]:
    total = max(1, stacks.total())
    return [(frame, count / total) for frame, count in found.most_common()]


@dataclass(slots=True)
class _Node:
    count: int = 0
    below: dict[str, "_Node"] = field(default_factory=dict)


def draw(stacks: Stacks, title: str) -> str:
    """The flame graph: each box is a function, as wide as its share, on the one that called it.
    The words of a box that is too narrow for them are shown by pointing at it."""
    root = _Node()
    for stack, count in stacks.items():
        node = root
        node.count += count
        for frame in stack:
            node = node.below.setdefault(frame, _Node())
            node.count += count
    boxes: list[str] = []
    depth = _draw(boxes, root, 0.0, 0, WIDTH / max(1, root.count), max(1, root.count))
    height = LINE * (depth + 2)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">'
    style = "<style>text{font:11px monospace}rect{stroke:#fff;stroke-width:.4}</style>"
    words = f'<text x="4" y="12">{escape(title)}: {root.count} samples</text>'
    return "\n".join([head, style, words, *boxes, "</svg>"])


def _draw(boxes: list[str], node: _Node, left: float, depth: int, scale: float, total: int) -> int:
    """Draw what a function called. Returns the depth of the deepest box."""
    deepest = depth
    for frame, below in sorted(node.below.items()):
        width = below.count * scale
        if width >= NARROWEST:
            top = LINE * (depth + 1)
            hue = crc32(frame.encode()) % 55
            room = int(width / LETTER)
            shown = frame if len(frame) <= room else frame[: max(0, room - 1)]
            boxes.append(
                f"<g><title>{escape(frame)} ({100 * below.count / total:.1f} %)</title>"
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{LINE - 1}"'
                f' fill="hsl({hue},80%,70%)"/>'
                f'<text x="{left + 2:.1f}" y="{top + 12}">{escape(shown)}</text></g>'
            )
            deepest = max(deepest, _draw(boxes, below, left, depth + 1, scale, total))
        left += width
    return deepest
