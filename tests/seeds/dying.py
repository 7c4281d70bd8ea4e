"""Ways for a gateway to die that many of the reports have in common."""

from tests.runtime.gateway import Life, Setting, living
from tests.runtime.scripts import calls, says, script

WORK = script(calls("do_none"), says("through"))
"""A turn with one tool call and an answer."""


async def die_at_work(setting: Setting, *chats: str) -> None:
    """In each chat a turn is in its tool when the power fails."""
    setting.world.hangs = {"do_none"}
    async with living(setting) as life:
        await at_work(life, *chats)
    setting.world.hangs = set()


async def at_work(life: Life, *chats: str) -> None:
    """Open a turn in each chat and wait until its tool runs."""
    ran = life.setting.world.ran
    for chat in chats:
        before = len(ran)
        await life.says(chat, WORK)
        await life.until(lambda seen=before: len(ran) > seen, f"{chat} is at work")  # type: ignore[misc]
