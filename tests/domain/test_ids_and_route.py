"""The names under which people meet things."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.domain.ids import PREFIXES, ChannelName, parse_shown, shown
from koboshi.domain.route import Route

TELEGRAM = ChannelName("telegram:main")


def test_an_id_is_shown_with_the_letter_of_its_kind() -> None:
    assert shown("turn", 12) == "t12"


@given(st.sampled_from(sorted(PREFIXES)), st.integers(0, 10**18 - 1))
def test_an_id_that_was_shown_is_understood(kind: str, number: int) -> None:
    assert parse_shown(shown(kind, number)) == (kind, number)


def test_no_two_kinds_share_a_letter() -> None:
    assert len(set(PREFIXES.values())) == len(PREFIXES)


@pytest.mark.parametrize(
    "text", ["", "t", "12", "x12", "t-1", "t 1", "t1.5", "tt1", "t１２", "t²", "t" + "9" * 19]
)
def test_what_is_no_id_names_nothing(text: str) -> None:
    assert parse_shown(text) is None


@given(st.text())
def test_no_text_is_too_strange_to_be_looked_up(text: str) -> None:
    found = parse_shown(text)

    assert found is None or found[0] in PREFIXES


def test_a_route_is_written_from_the_channel_down() -> None:
    assert str(Route(channel=TELEGRAM, chat="42")) == "telegram:main/42"


def test_a_route_names_its_thread_if_it_has_one() -> None:
    assert str(Route(channel=TELEGRAM, chat="42", thread="7")) == "telegram:main/42/7"


def test_two_threads_of_a_chat_are_two_routes() -> None:
    """S32."""
    assert Route(channel=TELEGRAM, chat="42", thread="1") != Route(
        channel=TELEGRAM, chat="42", thread="2"
    )


def test_the_same_place_is_the_same_route() -> None:
    assert {Route(channel=TELEGRAM, chat="42"), Route(channel=TELEGRAM, chat="42")} == {
        Route(channel=TELEGRAM, chat="42", thread="")
    }
