"""What a chat is called."""

from koboshi.domain.chat import TITLE_CHARS_MAX, title_of


def test_the_first_line_names_a_chat_until_it_is_given_a_name() -> None:
    assert title_of("", "\n  How are you?\nWell?") == "How are you?"
    assert title_of("The garden", "How are you?") == "The garden"
    assert title_of("", "") == ""


def test_a_name_that_is_cut_says_so() -> None:
    """Red before: the header of the page ended in the middle of a word."""
    words = "word " * TITLE_CHARS_MAX
    cut = title_of("", words)

    assert cut.endswith("word…")
    assert len(cut) <= TITLE_CHARS_MAX
    assert title_of("", "x" * TITLE_CHARS_MAX) == "x" * TITLE_CHARS_MAX
