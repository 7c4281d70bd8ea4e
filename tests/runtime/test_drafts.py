"""An answer is shown while it grows, and all else is as without it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from anyio import sleep

from koboshi.domain.errors import ModelOverfull
from koboshi.domain.ids import ChannelName, Generation, Seq, SessionId, TurnId
from koboshi.domain.route import Route
from koboshi.domain.session import Session
from koboshi.ports.channel import Abilities, Channel
from koboshi.runtime.drafts import Drafts
from tests.harness.platform import FakeChannel, Platform

MAIN = ChannelName("telegram:main")
SESSION = Session(
    session_id=SessionId(1),
    route=Route(channel=MAIN, chat="7"),
    generation=Generation(1),
    context_from=Seq(0),
)


class Showing(FakeChannel):
    """A channel on which words can be seen growing."""

    def __init__(self, may_show: Callable[[], object] = lambda: None) -> None:
        super().__init__(Platform(), MAIN)
        self.shown: list[str] = []
        self._may_show = may_show

    @property
    def abilities(self) -> Abilities:
        return Abilities(drafts=True)

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        self._may_show()
        self.shown.append(text)


def drafts_on(channel: Channel) -> Drafts:
    channels: Mapping[ChannelName, Channel] = {MAIN: channel}
    return Drafts(channels=channels)


async def test_growing_words_are_shown_now_and_then() -> None:
    channel = Showing()
    async with drafts_on(channel).showing(SESSION, TurnId(1)) as on_text:
        assert on_text is not None
        for number in range(10):
            on_text(f"{number} ")
            await sleep(0.5)

    assert 3 <= len(channel.shown) <= 6
    assert all("0 1 2 3 4 5 6 7 8 9 ".startswith(words) for words in channel.shown)


async def test_what_is_answered_at_once_is_not_shown_before() -> None:
    channel = Showing()
    async with drafts_on(channel).showing(SESSION, TurnId(1)) as on_text:
        assert on_text is not None
        on_text("yes")
        await sleep(0.1)

    assert channel.shown == []


async def test_an_error_of_the_model_keeps_its_name() -> None:
    """A request that is too long is summed up also where its answer would have been shown."""
    with pytest.raises(ModelOverfull):
        async with drafts_on(Showing()).showing(SESSION, TurnId(1)):
            raise ModelOverfull("too long")


async def test_showing_that_fails_costs_nothing() -> None:
    """S32."""

    def fail() -> None:
        raise OSError("unplugged")

    async with drafts_on(Showing(fail)).showing(SESSION, TurnId(1)) as on_text:
        assert on_text is not None
        on_text("yes")
        await sleep(5)


async def test_what_a_child_writes_is_not_shown() -> None:
    async with drafts_on(Showing()).showing(replace(SESSION, aside="a1"), TurnId(1)) as on_text:
        assert on_text is None
