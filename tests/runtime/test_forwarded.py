"""Words that a person passes on are read by the agent, and are never commands."""

from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound
from tests.runtime.gateway import Setting, living


@pytest.mark.parametrize("said", ["/approve", "/stop all", "/queue buy milk", "/new", "/nonsense"])
async def test_forwarded_words_are_never_commands(home: Path, said: str) -> None:
    """Issue 15, V6: also where a channel does not write the mark before them."""
    words = Words(text=said, sent_ms=0)
    inbound = Inbound(
        route=Route(channel=ChannelName("fake:main"), chat="room"),
        external_id="1",
        sender="ann",
        words=words,
    )
    async with living(Setting(home=home)) as life:
        intake = life.gateway.intake
        forwarded = replace(inbound, words=replace(words, is_forwarded=True))
        arrival = intake.look_at(forwarded)
        own = intake.look_at(inbound)

    assert arrival.command is None
    assert arrival.inbound.words.text == said
    assert arrival.inbound.words.busy is None
    assert own.command is not None or own.inbound.words.busy is not None
