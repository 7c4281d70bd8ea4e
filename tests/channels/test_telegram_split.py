"""A long answer in parts: nothing is lost, code stays code, and each part can be sent."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koboshi.channels.telegram.render import render, split, units
from tests.harness.telegram_rules import ANY_TEXT, HOSTILE, MARKDOWN, check, shown, squeezed

ORDINARY = """## What `retry` does

It tries **again**, up to *three* times, see [the manual](https://e.org/retry?a=1&b=2).
The second line names `snake_case` words; it goes on for a while, without much ado. And on.

- first item with **bold words in it**
  - nested item, with `code`

    ```python
    def again(x: int) -> int:
        return x + 1
    ```
- second item 😀

> Quoted words, and more of them.

| name | count |
|---|--:|
| a | 1 |
| b | 22 |

"""


def check_parts(markdown: str, units_max: int) -> tuple[str, ...]:
    """Split, and fail if a word is lost or a part cannot be sent."""
    whole = render(markdown)
    parts = split(markdown, units_max)
    shown_parts = [render(part) for part in parts]
    for rendered in shown_parts:
        check(rendered)
        assert 1 <= units(rendered.text) <= units_max
    assert "".join(squeezed(part.text) for part in shown_parts) == squeezed(whole.text)
    return parts


@settings(deadline=None)
@given(markdown=MARKDOWN | ANY_TEXT, units_max=st.integers(2, 60))
def test_no_word_is_lost_and_every_part_can_be_sent(markdown: str, units_max: int) -> None:
    check_parts(markdown, units_max)


@settings(deadline=None)
@given(blocks=st.lists(MARKDOWN, min_size=2, max_size=6), units_max=st.integers(60, 400))
def test_long_answers_are_split_without_loss(blocks: list[str], units_max: int) -> None:
    check_parts("\n\n".join(blocks), units_max)


@pytest.mark.parametrize(
    "markdown",
    [
        ORDINARY * 120,
        "😀" * 20_000,
        "👨‍👩‍👧‍👦 " * 4_000,
        "日本語の文章です。" * 5_000,
        "مرحبا بالعالم، " * 4_000,
        "w" * 50_000,
        "**" + "bold words " * 2_000 + "end**",
        "> " + "quoted words " * 2_000,
        "```py\n" + "    x = 1\n" * 3_000 + "```",
        "```\n" + "x" * 20_000 + "\n```",
        "| a | b |\n|-|-|\n" + "| some | cells |\n" * 2_000,
        "".join(f"{' ' * 3 * (n % 5)}1. item {n}\n" for n in range(3_000)),
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("units_max", [4096, 1000])
def test_large_answers_are_split_without_loss(markdown: str, units_max: int) -> None:
    parts = check_parts(markdown, units_max)

    least = units(squeezed(render(markdown).text)) / units_max
    assert least <= len(parts) <= 6 * least


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_answers_are_split_without_loss(piece: str) -> None:
    check_parts(piece * (6_000 // len(piece)), 4096)


@pytest.mark.parametrize("markdown", ["a", "**a** b\n\n- c ", "`" * 4096])
def test_what_fits_is_returned_as_it_is(markdown: str) -> None:
    assert split(markdown, 4096) == (markdown,)


@pytest.mark.parametrize("markdown", ["", " \n ", "\x00"])
def test_of_nothing_there_are_no_parts(markdown: str) -> None:
    assert split(markdown, 100) == ()


@pytest.mark.parametrize(
    "markdown, units_max, parts",
    [
        ("one two.\n\nthree four", 15, ("one two.\n", "three four")),
        ("one two\nthree four", 15, ("one two", "three four")),
        ("one two. three four", 15, ("one two.", "three four")),
        ("one two three four", 15, ("one two three", "four")),
        ("onetwothreefour", 10, ("onetwothre", "efour")),
        ("一二。三四五", 5, ("一二。", "三四五")),
        ("- one two\n- three\n- four", 14, ("• one two", "• three\n• four")),
    ],
)
def test_it_is_cut_where_it_hurts_least(
    markdown: str, units_max: int, parts: tuple[str, ...]
) -> None:
    assert split(markdown, units_max) == parts


def test_parts_at_the_ends_of_blocks_are_the_lines_of_the_model() -> None:
    parts = split(ORDINARY * 40, 4096)

    assert len(parts) > 3
    assert all(part in ORDINARY * 40 for part in parts)


def test_a_heading_stays_with_what_it_is_about() -> None:
    parts = split("some words of a text\n\n# Head\n\nwords below it", 30)

    assert parts == ("some words of a text\n", "# Head\n\nwords below it")


def test_code_that_is_cut_stays_code_of_its_language() -> None:
    code = "".join(f"    line {n}\n" for n in range(100))

    parts = split(f"Look:\n\n```python\n{code}```\n\nThat is all.", 200)

    assert len(parts) > 4
    for part in parts[1:-1]:
        assert part.startswith("```python\n")
        assert part.endswith("\n```")
        assert [kind for kind, _ in shown(render(part))] == ["pre"]
        assert all(line.startswith("line ") for line in render(part).text.split("\n"))


def test_what_is_formatted_where_it_is_cut_stays_so_in_both_parts() -> None:
    markdown = f"**{'bold ' * 10}end** > [{'link ' * 10}end](https://e.org/a_(b)?c&d)"

    rendered = [render(part) for part in split(markdown, 40)]

    kinds = [[kind for kind, _ in shown(part)] for part in rendered]
    assert kinds == [["bold"], ["bold", "text_link"], ["text_link"]]
    urls = {entity.url for part in rendered for entity in part.entities}
    assert urls == {"", "https://e.org/a_(b)?c&d"}


@pytest.mark.parametrize("character", ["😀", "👨‍👩‍👧‍👦", "🇩🇪", "e\u0301", "👍🏽", "❤️"])
def test_a_character_is_not_parted_from_its_marks(character: str) -> None:
    for units_max in (12, 13, 14, 15, 16):
        for part in split(character * 50, units_max):
            assert part == character * (len(part) // len(character))


def test_time_grows_with_the_length() -> None:
    split(ORDINARY, 100)

    def seconds_to_split(times: int) -> float:
        began = time.process_time()
        split(ORDINARY * times, 4096)
        return time.process_time() - began

    short = min(seconds_to_split(40) for _ in range(3))
    assert min(seconds_to_split(80) for _ in range(3)) < 4 * short


def test_a_part_needs_room_for_any_character() -> None:
    with pytest.raises(ValueError, match="at least 2 units"):
        split("a", 1)
