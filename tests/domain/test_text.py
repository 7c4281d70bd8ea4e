"""Text from outside: nothing in it moves a cursor, hides or turns around, and none takes long."""

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.text import head_and_tail, plain, visible

ESC = "\x1b"
NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b[]P^_X\\0;?m\x07\x18\x1a\x08\r\n\t\x00\x7f\x84\x85\x90\x98\x9b\x9c\x9d\x9e\x9f"
            "\u200b\u200d\u202e\u2028\ufe0f\U000e0041ab "
        ),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    "printed,seen",
    [
        (f"{ESC}[1;31mred{ESC}[0m", "red"),
        (f"{ESC}[38:2::255:0:0mred{ESC}[m", "red"),
        ("\x9b31mred\x9b0m", "red"),
        (f"{ESC}[?25l{ESC}[2J{ESC}[1;1Hat home", "at home"),
        (f"{ESC}[ qcursor", "cursor"),
        (f"{ESC}]0;title\x07text", "text"),
        (f"{ESC}]0;title{ESC}\\text", "text"),
        ("\x9d0;title\x9ctext", "text"),
        (f"{ESC}]8;;http://x.test\x07link{ESC}]8;;\x07", "link"),
        (f"{ESC}]52;c;c2VjcmV0\x07text", "text"),
        (f"{ESC}Pq#0;2;0\n~~@@{ESC}\\after a picture", "after a picture"),
        ("\x90q~~\x9cafter", "after"),
        (f"{ESC}_Gf=32;AAAA{ESC}\\after", "after"),
        (f"{ESC}^private{ESC}\\after", "after"),
        (f"{ESC}Xstring{ESC}\\after", "after"),
        ("\x98a\x9c\x9eb\x9c\x9fc\x9cd", "d"),
        (f"{ESC}(B{ESC})0{ESC}=plain{ESC}>", "plain"),
        (f"{ESC}7{ESC}[5Asaved{ESC}8{ESC}c", "saved"),
        (f"end{ESC}", "end"),
        (f"end{ESC}[", "end"),
        (f"end{ESC}[31", "end31"),
        (f"{ESC}{ESC}[0m[31mtext", "[31mtext"),
        ("bell\x07 null\x00 del\x7f", "bell null del"),
        ("tab\tstays\n", "tab\tstays\n"),
    ],
)
def test_of_escapes_nothing_is_seen(printed: str, seen: str) -> None:
    assert plain(printed) == seen


@pytest.mark.parametrize(
    "printed,seen",
    [
        (f"{ESC}]0;no end\nthe rest\n", "0;no end\nthe rest\n"),
        (f"{ESC}Pno end\nthe rest", "no end\nthe rest"),
        ("\x9dno end\nthe rest", "no end\nthe rest"),
        (f"{ESC}]0;first line\nthe rest\x07", "0;first line\nthe rest"),
        (f"{ESC}]0;broken{ESC}[31mred", "0;brokenred"),
        (f"{ESC}]0;cancelled\x18text\x07", "0;cancelledtext"),
    ],
)
def test_a_string_without_an_end_hides_nothing(printed: str, seen: str) -> None:
    assert plain(printed) == seen


@pytest.mark.parametrize(
    "printed,seen",
    [
        ("10%\r50%\r100%\ndone", "100%\ndone"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("twice\r\r\nreturned", "twice\nreturned"),
        ("not overwritten yet\r", "not overwritten yet"),
        ("\rfirst", "first"),
        ("hidden\r\x00\nnext", "hidden\nnext"),
        (f"old words\r{ESC}[Knew", "new"),
        ("N\bNA\bAM\bME\bE", "NAME"),
        ("|\b/\b-\b\\\b", "\\"),
        ("abc\b\b\b\b\bxy", "xyc"),
        ("password: ***\b\b\b   ", "password:    "),
        ("a\x0bb\x0cc\x85d\u2028e\u2029f", "a\nb\nc\nd\ne\nf"),
    ],
)
def test_of_a_line_that_was_written_over_the_last_form_is_seen(printed: str, seen: str) -> None:
    assert plain(printed) == seen


@pytest.mark.parametrize(
    "hidden",
    [
        *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c\u200e\u200f",
        *"\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\xad\u034f\u180e\u3164",
        *"\ufe00\ufe0f\ufff9\U000e0001\U000e0041\U000e007f\U000e0100\U000e01ef",
    ],
)
def test_marks_that_hide_or_turn_text_are_taken_out(hidden: str) -> None:
    assert plain(f"a{hidden}b") == "ab"
    assert visible(f"a{hidden}b") == f"a<U+{ord(hidden):04X}>b"


@pytest.mark.parametrize(
    "text", ["", "é ü ß", "日本語 한국어", "עברית العربية", "👍🏽 → ✓", "a\tb\n\n", "\ufffd"]
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert plain(text) == text
    assert visible(text) == text


@given(NASTY)
def test_nothing_that_moves_a_cursor_is_ever_left(text: str) -> None:
    seen = plain(text)

    assert all(char in "\t\n" or char >= " " for char in seen)
    assert not any("\x7f" <= char <= "\x9f" for char in seen)
    assert "\u202e" not in seen
    assert "\u200b" not in seen


@given(NASTY)
def test_making_it_plain_twice_is_making_it_plain_once(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@given(NASTY)
def test_what_is_visible_has_nothing_to_strip(text: str) -> None:
    assert plain(visible(text)) == visible(text)


def test_halves_of_characters_are_written_out() -> None:
    assert visible("a\udcff\ud800") == "a<U+DCFF><U+D800>"


ADVERSARIAL = [
    *("a", "\r", "a\b", "a\r", "\n", ESC, f"{ESC}[", f"{ESC}]", f"{ESC}P", f"{ESC}[0 "),
    *("\x9b0;", "\x9d", "\x90", "\x90\x9d", "\x98\x9e\x9f", "\u202e", f"{ESC}]{ESC}"),
]


@pytest.mark.parametrize("unit", ADVERSARIAL, ids=ascii)
@pytest.mark.parametrize("lead", ["", f"{ESC}]", "\x9b"], ids=ascii)
def test_a_long_text_made_to_hurt_does_not_take_long(unit: str, lead: str) -> None:
    text = lead + unit * (200_000 // len(unit))
    begin = process_time()

    plain(text)
    visible(text[:50_000])

    assert process_time() - begin < 1


def test_a_short_text_is_not_shortened() -> None:
    assert head_and_tail("as it is", 8) == "as it is"


def test_a_long_text_keeps_its_head_and_its_tail_at_line_ends() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))

    short = head_and_tail(text, 1_000)

    head, missing, tail = re.split(r"… (\d+) characters left out …\n", short)
    assert len(head) + int(missing) + len(tail) == len(text)
    assert head.startswith("line 0\n")
    assert head.endswith("\n")
    assert tail.startswith("line ")
    assert tail.endswith("line 9999\n")


def test_a_long_line_is_cut_where_it_must_be() -> None:
    """A line end at the very beginning is no reason to throw the rest of the half away."""
    short = head_and_tail("\n" + "x" * 5_000 + "\n", 1_000)

    assert short.startswith("\n" + "x" * 469 + "\n… ")
    assert short.endswith("\n" + "x" * 469 + "\n")


@given(st.text(alphabet="ab\n", max_size=2_000), st.integers(min_value=100, max_value=1_000))
def test_a_shortened_text_is_within_its_limit_and_counts_what_is_missing(
    text: str, limit: int
) -> None:
    short = head_and_tail(text, limit)

    assert len(short) <= limit
    if short != text:
        head, _, rest = short.partition("… ")
        missing, _, tail = rest.partition(" characters left out …\n")
        kept = len(text) - int(missing) - len(tail)
        assert text.startswith(head[:kept])
        assert text.endswith(tail)
        assert kept in (len(head), len(head) - 1)
