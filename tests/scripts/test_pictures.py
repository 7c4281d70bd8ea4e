"""The pictures of the documentation: they are there, small, and do nothing but show."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.terminal_svg import WIDTH_CHARS, Line, drawn

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BYTES_MAX = 300_000


def pictures_in(page: Path) -> list[Path]:
    named = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    return [page.parent / name for name in named]


def test_the_readme_shows_a_kill_and_the_page() -> None:
    assert [picture.name for picture in pictures_in(ROOT / "README.md")] == ["kill.svg", "page.png"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_of_a_page_is_there_and_small(page: Path) -> None:
    for picture in pictures_in(page):
        assert picture.is_file(), picture
        assert picture.stat().st_size <= BYTES_MAX, picture


def test_a_recording_shows_each_line_at_its_time_and_obeys_none() -> None:
    lines = [
        Line(at_s=0, kind="typed", text="$ echo '</text><script>'"),
        Line(at_s=4, kind="said", text="x" * (WIDTH_CHARS + 1)),
    ]

    picture = drawn(lines)

    root = ElementTree.fromstring(picture)
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["$ echo '</text><script>'", "x" * WIDTH_CHARS, "x"]
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert "@keyframes l1 { 0%, 25.00% { opacity: 0 }" in picture
