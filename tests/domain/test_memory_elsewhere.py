"""Files in which another gateway remembered something, read entry by entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.memory import MemoryEntry, MemoryId, MemoryLimits, Shelf, normal
from koboshi.domain.memory_elsewhere import fitting, texts_elsewhere


@pytest.mark.parametrize(
    "content, expected",
    [
        ("", ()),
        ("one\n§\ntwo\n- with a list\n", ("one", "two\n- with a list")),
        ("one\nand more\n\ntwo\n", ("one\nand more", "two")),
        ("# MEMORY.md\n\n- one\n  and more\n* two\n", ("one\nand more", "two")),
        (
            "## Server\n- [x] is kiri\n\n## Empty\n## Tea\ngreen\n",
            ("Server: is kiri", "Tea: green"),
        ),
        ("1. one\n2) two\n- \n-\n", ("one", "two")),
        ("one\n\none\n", ("one",)),
        ("\ufeff# Title #\n<!-- koboshi: revision 3 -->\none\n", ("one",)),
    ],
)
def test_entries_of_a_file(content: str, expected: tuple[str, ...]) -> None:
    assert texts_elsewhere(content.removeprefix("\ufeff")) == expected


@given(st.text(alphabet="ab#-*1. §\n\t[x]\x00\x1b\ud800", max_size=60))
def test_any_text_gives_entries_as_they_are_stored(content: str) -> None:
    found = texts_elsewhere(content)
    assert all(each and normal(each) == each for each in found)
    assert len(set(found)) == len(found)


@given(st.lists(st.tuples(st.sampled_from(Shelf), st.text(max_size=30)), max_size=8))
def test_each_text_is_taken_is_left_or_is_there(texts: list[tuple[Shelf, str]]) -> None:
    limits = MemoryLimits(memory_chars=40, user_chars=20)
    there = MemoryEntry(memory_id=MemoryId(1), shelf=Shelf.USER, text="there")
    fits = fitting(texts, limits, (there,))
    known = {*fits.taken, *fits.left, (Shelf.USER, "there")}
    assert {(shelf, normal(words)) for shelf, words in texts if normal(words)} <= known
    assert len(set(fits.taken)) == len(fits.taken)


USER_MODEL = """\
# USER.md - User Model

Store stable user preferences and profile facts as directives.

- Begin each directive with an imperative such as `Always`, `Never`, or `Prefer`.

## Directives

Replace the example below with a real directive.

<!-- observed: 2026-03-01 | status: active -->

- Always answer in German,
  and briefly.

<!-- observed: 2026-01-01 | status: superseded -->

- Prefer English.
<!-- observed: YYYY-MM-DD | status: active -->
- Prefer ...

## Related

- [Agent workspace](/concepts/agent-workspace)
"""


def test_of_a_model_of_the_user_only_its_directives_that_hold_are_entries() -> None:
    """OpenClaw 2026.9.6 makes this file with a page of advice in it."""
    assert texts_elsewhere(USER_MODEL) == ("Always answer in German,\nand briefly.",)
    untouched = USER_MODEL.replace("Always answer in German,\n  and briefly.", "Prefer ...")
    assert texts_elsewhere(untouched) == ()
