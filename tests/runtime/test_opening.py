"""Channels at the start: the gateway ends only where none of them is left."""

from pathlib import Path

import pytest

from koboshi.channels.telegram.options import TelegramOptions
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import ChannelName
from koboshi.runtime.opening import Opening
from koboshi.runtime.status_notifier import unreached_words

MAIN, WEB = ChannelName("telegram:main"), ChannelName("web:main")


def test_with_one_channel_left_nothing_ends() -> None:
    """Issue 12, B11."""
    opening = Opening(channels=2)
    opening.refuse(MAIN, ChannelUnusable("the token is wrong"))

    assert opening.is_known.is_set()
    assert not opening.is_accepting.is_set()


def test_with_none_left_all_reasons_are_told() -> None:
    """Issue 12, B11."""
    opening = Opening(channels=2)
    opening.refuse(MAIN, ChannelUnusable("the token is wrong"))
    with pytest.raises(ChannelUnusable, match="the token is wrong; the port is in use"):
        opening.refuse(WEB, ChannelUnusable("the port is in use"))


def test_a_service_manager_is_told_what_is_down() -> None:
    """Issue 12, B11."""
    words = unreached_words({"web:main": None, "telegram:main": "the token is wrong"})
    assert words == ("telegram:main is down: the token is wrong",)


@pytest.mark.parametrize(
    "token, account",
    [("123456:AAsecret", "123456"), ("AAsecret", ""), ("a:b", ""), (":b", ""), ("\u0663:b", "")],
)
def test_the_account_of_a_bot_is_the_first_part_of_its_token(token: str, account: str) -> None:
    """Issue 12, A6: and nothing of what is no token is ever stored."""
    options = TelegramOptions(
        name=MAIN, token=token, api_base="", ambiguous="probe", per_second=0, home=Path("nowhere")
    )
    assert options.account == account
