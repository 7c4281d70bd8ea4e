"""Lines of a terminal, each at its time, as one SVG that plays them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH_CHARS = 100
CHAR_PX = 8.0
LINE_PX = 19
MARGIN_PX = 18
REST_S = 12.0
"""How long the last picture stays before it begins anew."""

_STYLE = """\
svg { background: #1b1a18; border-radius: 8px }
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
text { fill: #cfc9bf; white-space: pre }
.typed { fill: #ffffff; font-weight: bold }
.you { fill: #f0a79a }
.koboshi { fill: #8fd3a8 }
.job { fill: #86b3f2 }
@media (prefers-reduced-motion: reduce) { text { animation: none !important } }"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    at_s: float
    kind: str
    text: str


def drawn(lines: Sequence[Line]) -> str:
    """The picture. Where nothing moves, all lines are shown."""
    shown = [part for line in lines for part in _wrapped(line)]
    total_s = (shown[-1].at_s if shown else 0.0) + REST_S
    height = 2 * MARGIN_PX + LINE_PX * len(shown)
    width = round(2 * MARGIN_PX + CHAR_PX * WIDTH_CHARS)
    frames, texts = [], []
    for number, line in enumerate(shown):
        begin = 100 * line.at_s / total_s
        frames.append(
            f"@keyframes l{number} {{ 0%, {begin:.2f}% {{ opacity: 0 }} "
            f"{min(begin + 0.01, 100):.2f}%, 100% {{ opacity: 1 }} }}"
        )
        y = MARGIN_PX + LINE_PX * (number + 1) - 6
        texts.append(
            f'<text class="{line.kind}" x="{MARGIN_PX}" y="{y}" '
            f'style="animation: l{number} {total_s:.2f}s infinite">{escape(line.text)}</text>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" xml:space="preserve">',
            "<title>A gateway is killed in the middle of a job, and the job goes on</title>",
            "<style>",
            _STYLE,
            *frames,
            "</style>",
            *texts,
            "</svg>",
            "",
        ]
    )


def _wrapped(line: Line) -> list[Line]:
    """The line in pieces that fit."""
    pieces = [line.text[i : i + WIDTH_CHARS] for i in range(0, len(line.text), WIDTH_CHARS)]
    return [Line(at_s=line.at_s, kind=line.kind, text=piece) for piece in pieces or [""]]
