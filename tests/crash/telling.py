"""Tell a story to a gateway that is killed on the way, and check everything afterwards."""

from collections.abc import Sequence
from pathlib import Path

from tests.crash.stories import CHAT, STORIES
from tests.harness.invariants import Line, check_growth, check_person, check_rows, transcript
from tests.harness.lives import STOPPED, Lives, lives
from tests.harness.rows import Rows, read_rows

_references: dict[str, list[list[Line]]] = {}


async def checked(life: Lives) -> Rows:
    """Let it come to rest, end it, and check every invariant. Returns what is left on the disk."""
    told = await life.finish()
    rows = read_rows(life.gateway.home)
    check_rows(rows)
    check_growth(life.remains, rows)
    for chat, person in life.people.items():
        check_person(person, rows, told[chat])
    return rows


async def tell(home: Path, name: str, ends: Sequence[str]) -> Rows:
    """Tell the story while the gateway ends at each of `ends`, and check every invariant."""
    async with lives(home, ends, env=STORIES[name].env) as life:
        await STORIES[name].tell(life, CHAT)
        return await checked(life)


async def told_undisturbed(home: Path, name: str) -> list[list[Line]]:
    """The transcript that the story leaves when nobody kills anything; told once per process."""
    if name not in _references:
        rows = await tell(home, name, [STOPPED] if STORIES[name].stops else [])
        _references[name] = transcript(rows, CHAT)
    return _references[name]
