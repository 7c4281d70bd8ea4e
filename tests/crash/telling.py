"""Tell a story to a gateway that is killed on the way, and check everything afterwards."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from koboshi.boundary.probe import probe
from koboshi.domain.sandbox import Boundary
from tests.crash.stories import CHAT, STORIES
from tests.harness.invariants import Line, check_growth, check_person, check_rows, transcript
from tests.harness.lives import STOPPED, Lives, lives
from tests.harness.rows import Rows, read_rows
from tests.harness.seen import check_seen
from tests.harness.tally import add_to_tally

_references: dict[str, list[list[Line]]] = {}
_verbs: dict[str, set[str]] = {}


async def checked(life: Lives, *, boundary: Boundary | None = None) -> Rows:
    """Let it come to rest, end it, and check every invariant. Returns what is left on the disk.
    `boundary` is the one that the owner chose; None for the best of this machine."""
    told = await life.finish()
    rows = read_rows(life.gateway.home)
    check_rows(rows)
    check_growth(life.remains, rows)
    seen = life.seen
    if seen is not None:
        check_seen(seen, rows, deaths=len(life.remains))
    check_inside(rows, probe().best if boundary is None else boundary)
    for chat, person in life.people.items():
        check_person(person, rows, told[chat])
    return rows


def check_inside(rows: Rows, boundary: Boundary) -> None:
    """Issue 15: every command of a story ran inside its boundary, in any life, but those that a
    person let out."""
    asked_out = {
        (call["turn_id"], call["call_id"])
        for call in rows.of("calls")
        if call["approved_by"] is not None and '"outside"' in str(call["arguments"])
    }
    for process in rows.of("processes"):
        if (process["turn_id"], process["call_id"]) not in asked_out:
            assert process["boundary"] == boundary, process


async def tell(
    home: Path, name: str, ends: Sequence[str], env: Mapping[str, str] | None = None
) -> Rows:
    """Tell the story while the gateway ends at each of `ends`, and check every invariant."""
    story = STORIES[name]
    async with lives(home, [*story.first, *ends], env={**story.env, **(env or {})}) as life:
        await story.tell(life, CHAT)
        return await checked(life)


async def told_undisturbed(home: Path, name: str) -> list[list[Line]]:
    """The transcript that the story leaves when no one kills anything more than it wants; told
    once per process."""
    if name not in _references:
        story = STORIES[name]
        ends = [*story.first, *([STOPPED] if story.stops else [])]
        async with lives(home, ends, env=story.env) as life:
            await story.tell(life, CHAT)
            _verbs[name] = life.verbs_of_last_lives(len(story.first))
            rows = await checked(life)
        _references[name] = transcript(rows, CHAT)
    return _references[name]


def verbs_of(name: str) -> set[str]:
    """The verbs that the store was asked for when the story was told undisturbed, in the lives
    behind those that end as the story wants."""
    return _verbs[name]


@contextmanager
def counted(story: str, ends: Sequence[str]) -> Iterator[None]:
    """A case of the campaign, for the tally."""
    result = {"story": story, "kills": len(ends), "at": list(ends), "violations": 1}
    try:
        yield
        result["violations"] = 0
    finally:
        add_to_tally("crash points", result)
