"""Markdown as models write it becomes text and entities that the Bot API accepts."""

import time
from functools import cache

import pytest
from hypothesis import given, settings

from koboshi.channels.telegram.render import Entity, Rendered, clip, plain, render, units
from tests.harness.telegram_rules import ANY_TEXT, HOSTILE, MARKDOWN, check, shown


@pytest.mark.parametrize(
    "markdown, text, entities",
    [
        ("a **b** c", "a b c", [("bold", "b")]),
        ("*a* and _b_", "a and b", [("italic", "a"), ("italic", "b")]),
        ("~~a~~", "a", [("strikethrough", "a")]),
        ("***a***", "a", [("italic", "a"), ("bold", "a")]),
        ("**a *b* c**", "a b c", [("bold", "a b c"), ("italic", "b")]),
        ("say `x = 1`", "say x = 1", [("code", "x = 1")]),
        ("# Head\ntext", "Head\ntext", [("bold", "Head")]),
        ("Head\n====\n\ntext", "Head\n\ntext", [("bold", "Head")]),
        ("> a\n> b\n\nc", "a\nb\nc", [("blockquote", "a\nb")]),
        ("> a\n> > b", "a\nb", [("blockquote", "a\nb")]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("- a\n- b\n  - c", "• a\n• b\n  • c", []),
        ("- a\n\n- b", "• a\n\n• b", []),
        ("3. a\n4. b\n   1) c", "3. a\n4. b\n   1) c", []),
        ("0. a", "0. a", []),
        ("- [ ] a\n- [x] b", "☐ a\n☑ b", []),
        ("Here:\n- a\n- b", "Here:\n• a\n• b", []),
        ("one\ntwo  \nthree\\\nfour", "one\ntwo\nthree\nfour", []),
        ("<b>a</b> & &lt;", "<b>a</b> & <", []),
        ("<div>\n\n**a**\n\n</div>", "<div>\n\na\n\n</div>", [("bold", "a")]),
        ("    code\n      more", "code\n  more", [("pre", "code\n  more")]),
        ("```\n\ta\n```", "a", [("pre", "a")]),
        ("- a\n  ```\n  b\n  ```\n- c", "• a\nb\n• c", [("pre", "b")]),
    ],
)
def test_each_form_has_its_look(markdown: str, text: str, entities: list[tuple[str, str]]) -> None:
    rendered = render(markdown)

    assert rendered.text == text
    assert sorted(shown(rendered)) == sorted(entities)


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_word",
        "a * b * c",
        "a _ b",
        "2 * 3",
        "f(*args, **kwargs)",
        "_",
        "~5 min",
        "C#",
    ],
)
def test_marks_without_a_meaning_stay_as_they_are(text: str) -> None:
    assert render(text) == Rendered(text, ())


def test_code_keeps_its_language() -> None:
    rendered = render("a\n```python title=x\ndef f():\n    pass\n```\nb")

    assert rendered.text == "a\ndef f():\n    pass\nb"
    assert rendered.entities == (Entity("pre", 2, 17, language="python"),)


def test_styles_make_way_for_code_and_a_link_does_not() -> None:
    """The Bot API lets nothing but a quote hold code."""
    rendered = render("**a `b` c** [`d`](https://e.org)\n\n> `f`")

    assert shown(rendered) == [
        *(("bold", "a"), ("code", "b"), ("bold", "c"), ("text_link", "d")),
        *(("blockquote", "f"), ("code", "f")),
    ]


@pytest.mark.parametrize(
    "markdown, text, url",
    [
        ("[a](https://e.org/b_c?d=1&e)", "a", "https://e.org/b_c?d=1&e"),
        ("[a](<https://e.org/b c>)", "a", "https://e.org/b%20c"),
        ("[a](tg://user?id=1)", "a", "tg://user?id=1"),
        ("<https://e.org>", "https://e.org", "https://e.org"),
        ("[](https://e.org)", "https://e.org", "https://e.org"),
        ("![alt](http://e.org/x.png)", "alt", "http://e.org/x.png"),
        ("[![alt](http://e.org/x.png)](http://f.org)", "alt", "http://f.org"),
        ("[a][1]\n\n[1]: https://e.org", "a", "https://e.org"),
    ],
)
def test_an_address_that_telegram_takes_becomes_a_link(markdown: str, text: str, url: str) -> None:
    rendered = render(markdown)

    assert rendered == Rendered(text, (Entity("text_link", 0, units(text), url=url),))


@pytest.mark.parametrize(
    "markdown, text",
    [
        ("[a](docs/b.md)", "a (docs/b.md)"),
        ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
        ("[a](http://localhost:80/)", "a (http://localhost:80/)"),
        ("[a](mailto:b@c.org)", "a (b@c.org)"),
        ("<b@c.org>", "b@c.org"),
        ("[a](file:///etc/passwd)", "a (file:///etc/passwd)"),
        ("[a]()", "a"),
        ("[Note]: this", "[Note]: this"),
        ("see (1)\n\n[1]: https://e.org", "see (1)\n\n[1]: https://e.org"),
    ],
)
def test_any_other_address_is_shown(markdown: str, text: str) -> None:
    assert render(markdown) == Rendered(text, ())


def test_a_table_is_aligned_and_of_fixed_width() -> None:
    rendered = render("| Name | N |\n|---|--:|\n| **foo** | 1 |\n| 日本 | [22](http://e.org) |")

    assert rendered.text.split("\n") == [
        "Name |                 N",
        "-----+------------------",
        "foo  |                 1",
        "日本 | 22 (http://e.org)",
    ]
    assert [entity.type for entity in rendered.entities] == ["pre"]


def test_one_long_cell_does_not_make_every_row_long() -> None:
    rendered = render(f"|a|b|\n|-|-|\n|{'x' * 5000}|1|\n" + "|a|b|\n" * 500)

    assert len(rendered.text) < 5000 + 503 * 50


def test_offsets_are_utf16_code_units() -> None:
    rendered = render("  \n\n😀 **b😀** `c`")

    assert rendered.text == "😀 b😀 c"
    assert rendered.entities == (Entity("bold", 3, 3), Entity("code", 7, 1))
    assert units("a😀é") == 4


@pytest.mark.parametrize(
    "markdown", ["[a]: http://e.org\n\n[a]: http://e.org", "```\n```", "- ", "#", "![]()"]
)
def test_a_text_is_never_lost(markdown: str) -> None:
    assert render(markdown).text


@pytest.mark.parametrize("markdown", ["", " \n\t ", "\x00\x1b"])
def test_nothing_is_shown_as_nothing(markdown: str) -> None:
    assert render(markdown) == Rendered("", ())


def test_control_characters_and_broken_unicode_do_no_harm() -> None:
    assert render("a\x00b\x1b[1m\r\nc\ud800d\ud83d\ude00&#13;e").text == "ab[1m\nc\ufffdd😀 e"
    assert plain("**a**\x00\ud800 ") == Rendered("**a**\ufffd", ())


def test_what_is_nested_too_deeply_is_shown_as_it_was_written() -> None:
    """The parser would drop the words."""
    deep = ">" * 100 + " words"

    assert render(deep) == Rendered(deep, ())
    assert "words" in render("- " * 100 + "words").text


@settings(deadline=None)
@given(markdown=MARKDOWN | ANY_TEXT)
def test_every_text_becomes_what_the_bot_api_accepts(markdown: str) -> None:
    rendered = render(markdown)

    check(rendered)
    assert bool(rendered.text) == bool(plain(markdown).text)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_text_is_shown_at_little_cost(piece: str) -> None:
    """Not much more than an ordinary answer of a hundred kilobytes takes."""
    for chars in (1_000_000, 30_000):
        rendered, seconds = timed(piece * (chars // len(piece)))
        check(rendered)
        assert seconds < 15 * seconds_of_an_ordinary_answer()


@cache
def seconds_of_an_ordinary_answer() -> float:
    render("wake the parser")
    ordinary = "Some **words** with `code`, as models write them.\n\n" * 2000
    return max(timed(ordinary)[1] for _ in range(3))


def timed(markdown: str) -> tuple[Rendered, float]:
    began = time.process_time()
    rendered = render(markdown)
    return rendered, time.process_time() - began


@pytest.mark.parametrize(
    "markdown, units_max, text, entities",
    [
        ("**abc**", 3, "abc", [("bold", "abc")]),
        ("**abcd**", 3, "ab…", [("bold", "ab")]),
        ("a **b**", 2, "a…", []),
        ("a **b cd** e", 5, "a b…", [("bold", "b")]),
        ("> a *b cd*", 3, "a…", [("blockquote", "a")]),
        ("> a *b cd*", 4, "a b…", [("blockquote", "a b"), ("italic", "b")]),
        ("😀😀", 3, "😀…", []),
        ("😀😀", 2, "…", []),
        ("abcd", 1, "…", []),
        ("a👍🏽b", 4, "a…", []),
    ],
)
def test_clip_cuts_to_size(
    markdown: str, units_max: int, text: str, entities: list[tuple[str, str]]
) -> None:
    clipped = clip(render(markdown), units_max)

    assert clipped.text == text
    assert shown(clipped) == entities


@settings(deadline=None)
@given(markdown=MARKDOWN | ANY_TEXT)
def test_every_clipped_text_is_acceptable(markdown: str) -> None:
    for units_max in (1, 2, 7, 30):
        clipped = clip(render(markdown), units_max)
        check(clipped)
        assert units(clipped.text) <= units_max


def test_clip_needs_room_for_its_mark() -> None:
    with pytest.raises(ValueError, match="0 units"):
        clip(render("a"), 0)
