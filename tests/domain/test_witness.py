"""Whether a database went back, and how that is told."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.witness import Reached, Witness, gap_words, is_behind

SAW = Witness(journal=900, boot=12, birth="b", at_ms=1_800_000_000_000)
IN_STEP = Reached(journal=900, at_ms=1_800_000_000_000, knows_boot=True)


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.booleans())
def test_a_database_that_holds_what_was_seen_is_not_behind(
    seen: int, there: int, knows_boot: bool
) -> None:
    """Issue 12, A7: the one who was seen, and at least as many lines."""
    behind = is_behind(
        replace(SAW, journal=seen), Reached(journal=there, at_ms=0, knows_boot=knows_boot)
    )

    assert behind == (there < seen or not knows_boot)


def test_the_words_name_what_is_gone() -> None:
    shorter = replace(IN_STEP, journal=100, at_ms=1_799_990_000_000)
    words = gap_words(SAW, shorter)

    assert words.startswith("the database went back: it ends with journal line 100 of 2027-01-15")
    assert "boot 12 had written journal line 900 by 2027-01-15 08:00:00 UTC" in words
    assert "lines 101 to 900 are gone" in words


def test_an_empty_database_and_one_of_another_past_have_words_of_their_own() -> None:
    empty = Reached(journal=0, at_ms=0, knows_boot=False)
    other = replace(IN_STEP, journal=5_000, knows_boot=False)

    assert "it is empty" in gap_words(SAW, empty)
    assert "does not know that boot 12" in gap_words(SAW, other)


@given(st.integers(0, 2**62))
def test_no_time_is_too_strange_to_be_told(at_ms: int) -> None:
    assert "went back" in gap_words(replace(SAW, at_ms=at_ms), replace(IN_STEP, at_ms=at_ms))
