"""Commands tell of sub-agents, and stop them."""

from dataclasses import replace

import pytest

from koboshi.commands.run import respond
from koboshi.domain.command import Command, CommandName, Response
from koboshi.domain.session import CutKind
from tests.harness.session_facts import IDLE

AT_WORK = replace(IDLE, children=("a1 «stars» (for 2 min)", "a2 «dust» (for 5 s)"))


def asked(name: CommandName) -> Response:
    return respond(Command(name=name, said=f"/{name}", argument=""), AT_WORK)


def test_stop_ends_sub_agents_though_no_turn_is_open() -> None:
    answer = asked(CommandName.STOP)
    assert answer.cut is CutKind.STOP
    assert "Stopped: 2 sub-agents." in answer.reply


@pytest.mark.parametrize("name", [CommandName.STATUS])
def test_sub_agents_at_work_are_told(name: CommandName) -> None:
    assert "Sub-agents: a1 «stars» (for 2 min), a2" in asked(name).reply
