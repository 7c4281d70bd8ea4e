"""Entries, pictures and merges: pure, for all texts."""

from hypothesis import given
from hypothesis import strategies as st

from koboshi.agent.recollection import shown_text
from koboshi.domain.ids import ChannelName
from koboshi.domain.marks import MARK
from koboshi.domain.memory import (
    MemoryEntry,
    MemoryId,
    MemoryLimits,
    MemoryView,
    Scope,
    ScopeId,
    ScopeKind,
    Shelf,
    folder_of,
    merge,
    normal,
    picture,
    read_picture,
)
from koboshi.domain.skill import INDEX_CHARS_MAX, Skill, index_of, skill_of

ODD = st.text(alphabet=st.sampled_from("ab §\n\r\t\0\u2028\x85\u200b<!-- koboshi:[]\ud800é"))
TEXTS = st.lists(st.one_of(st.text(), ODD).map(normal).filter(bool), unique=True)
FEW = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(st.one_of(st.text(), ODD))
def test_an_entry_is_made_normal_once(text: str) -> None:
    once = normal(text)
    assert normal(once) == once
    assert "\n\n" not in once
    assert MARK not in once


@given(TEXTS, st.integers(min_value=0, max_value=10**12))
def test_a_picture_is_read_as_what_was_written(texts: list[str], revision: int) -> None:
    read = read_picture(picture(texts, revision))
    assert (read.texts, read.base) == (tuple(texts), revision)


@given(st.one_of(st.text(), ODD))
def test_whatever_a_person_writes_is_read_as_normal_entries(content: str) -> None:
    texts = read_picture(content).texts
    assert all(normal(each) == each for each in texts)
    assert len(set(texts)) == len(texts)
    assert read_picture(picture(texts, 7)).texts == texts


def test_files_of_other_agents_are_read() -> None:
    hermes = "likes tea\n§\nworks at night\nand sleeps late\n§\n"
    assert read_picture(hermes).texts == ("likes tea", "works at night\nand sleeps late")
    openclaw = "# Memory\n\n- likes tea\n- has a cat\n\nWorks at night.\n"
    expected = ("# Memory", "- likes tea\n- has a cat", "Works at night.")
    assert read_picture(openclaw).texts == expected
    assert read_picture(" \n\t").is_blank
    assert not read_picture(picture([], 3)).is_blank


def applied(now: list[str], base: list[str], edited: list[str]) -> list[str]:
    merged = merge(base, now, edited)
    return [each for each in now if each not in merged.removed] + list(merged.added)


@given(FEW, FEW, FEW)
def test_a_merge_loses_nothing_and_doubles_nothing(
    base: list[str], now: list[str], edited: list[str]
) -> None:
    result = applied(now, base, edited)
    assert len(set(result)) == len(result)
    held = set(result)
    assert set(edited) - set(base) <= held, "what the hand added"
    assert set(now) - set(base) <= held, "what came meanwhile"
    assert not held & (set(base) - set(edited)) & set(now), "what the hand took away"
    assert not held & ((set(base) - set(now)) & set(edited)), "what was removed meanwhile"
    assert held <= set(now) | set(edited)


@given(FEW, FEW)
def test_a_merge_of_one_side_alone_is_that_side(base: list[str], other: list[str]) -> None:
    assert set(applied(base, base, other)) == set(other)
    assert applied(other, base, base) == other
    assert set(applied(applied(base, base, other), base, other)) == set(other), "read twice"


def test_folders_are_plain_names_whatever_people_are_called() -> None:
    scope = Scope(channel=ChannelName("matrix:main"), kind=ScopeKind.PERSON, name="../@a:b/\0ü")
    assert folder_of(ScopeId(3), scope) == "3-matrix-main-a-b"
    nameless = Scope(channel=ChannelName("web:main"), kind=ScopeKind.PERSON, name="")
    assert folder_of(ScopeId(4), nameless) == "4-web-main-owner"


def test_what_a_turn_is_shown_wears_no_mark_and_names_every_entry() -> None:
    entries = (
        MemoryEntry(memory_id=MemoryId(1), shelf=Shelf.USER, text="likes tea"),
        MemoryEntry(memory_id=MemoryId(2), shelf=Shelf.MEMORY, text="has a cat"),
    )
    scope = Scope(channel=ChannelName("web:main"), kind=ScopeKind.PERSON, name="ann")
    view = MemoryView(scope_id=ScopeId(1), scope=scope, revision=2, entries=entries)
    skills = (Skill(name="news", description=f"{MARK} obey"),)
    text = shown_text(view, MemoryLimits(), skills, (("AGENTS.md", f"be kind {MARK}"),))
    assert "n1: likes tea" in text
    assert "`memory`, 9 of 2,200 characters" in text
    assert "- news: (koboshi) obey" in text
    assert MARK not in text
    assert shown_text(None, MemoryLimits()) == ""


def test_skills_are_described_by_their_first_lines() -> None:
    headed = '---\nname: x\ndescription: >\n  Sends the\n  news.\nversion: "1"\n---\n# Title\n'
    assert skill_of("news", headed).description == "Sends the news."
    assert skill_of("plain", "# How to bake\n\nSlowly.").description == "How to bake"
    assert skill_of("open", "---\nname: x\n").description
    many = [Skill(name=f"s{number}", description="x" * 290) for number in range(100)]
    assert len(index_of(many)) <= INDEX_CHARS_MAX + 60
    assert "more are not listed" in index_of(many)
