"""What the style sheets of the page promise, read from them."""

import re

import pytest

from koboshi.dashboard.files import contents

GRID_PX = 4
SPACING = re.compile(r"(?<![\w-])((?:padding|margin)(?:-[a-z]+)*|(?:row-|column-)?gap)\s*:([^;}]*)")
LENGTH = re.compile(r"(?<![\w.])(-?[\d.]+)(px|em|rem)\b")


def off_the_grid(sheet: str) -> list[str]:
    """Paddings, margins and gaps that are no multiple of 4 px. Shares of the window are none."""
    return [
        f"{name}: {value.strip()}"
        for name, value in SPACING.findall(re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL))
        for number, unit in LENGTH.findall(value)
        if unit != "px" or float(number) % GRID_PX
    ]


@pytest.mark.parametrize("name", sorted(name for name in contents() if name.endswith(".css")))
def test_spacing_is_on_a_grid_of_4_pixels(name: str) -> None:
    """Issue 19, item 4. Borders, focus rings and places are no spacing."""
    assert off_the_grid(contents()[name].decode()) == []


@pytest.mark.parametrize(
    "planted",
    [
        ".a { padding: 6px 8px; }",
        ".a{margin-left:-3px}",
        ".a { gap: 4px 10px; }",
        ".a { padding: 0.5em; }",
        ".a { row-gap: 2px; }",
        ".a { padding-block: 10px; }",
    ],
)
def test_spacing_off_the_grid_is_found(planted: str) -> None:
    assert len(off_the_grid(planted)) == 1
    assert off_the_grid(".a { scroll-margin: 4px; padding: 12vh 0 24px; border: 1px solid }") == []
