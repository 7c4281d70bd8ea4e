"""Who is named to the operator when a turn does not run, because a person in it is not allowed."""

from koboshi.control.narrate import Narrator
from koboshi.domain.session import Busy, Settings
from tests.harness.group import ROOM, let_in, revoke, writes
from tests.harness.homes import FRONT, Home


async def test_the_remedy_names_who_is_not_allowed_and_not_who_wrote_last(home: Home) -> None:
    """Issue 13: by the id that the configuration and `koboshi pairing list` have."""
    await let_in(home)
    await writes(home, "eve", "work")
    claim = await home.claim()
    home.configure(await home.session_id(ROOM, FRONT), Settings(busy=Busy.STEER))
    await writes(home, "ann", "and this, too")
    await home.step(claim)
    assert await revoke(home) == 1

    explanation = await home.explain(claim.turn_id)
    assert explanation.turn.state == "suspended"
    assert explanation.barred == ("eve",)
    told = Narrator(is_running=True, troubles={}).of_turn(explanation)
    assert f"add eve to `allow` of [channels.{FRONT.replace(':', '.')}]" in told.remedy


async def test_the_remedy_names_every_person_who_is_not_allowed(home: Home) -> None:
    """Issue 13: the first of them alone would not make it run."""
    await let_in(home)
    await let_in(home, "bob", 2)
    await writes(home, "eve", "work")
    claim = await home.claim()
    home.configure(await home.session_id(ROOM, FRONT), Settings(busy=Busy.STEER))
    await writes(home, "bob", "and this, too")
    await home.step(claim)
    await revoke(home)
    await revoke(home, "bob")

    assert sorted((await home.explain(claim.turn_id)).barred) == ["bob", "eve"]
