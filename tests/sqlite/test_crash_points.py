"""Every verb of the store can be killed right before and right after its commit."""

import asyncio
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import apsw
import pytest

from koboshi.stores.faults import VARIABLE, CrashPoint
from koboshi.stores.home_id import ID_NAME
from tests.harness.tally import WANTS_ALL
from tests.harness.victim import open_here, story

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "koboshi"
SOURCES = [*(PACKAGE / "kernel").glob("*.py"), *(PACKAGE / "stores").rglob("*.py")]

VERBS = frozenset(
    "accounts.give_back accounts.take "
    "agents.ask agents.begin agents.cancel agents.drained agents.end agents.give_up "
    "agents.propose agents.reply agents.say agents.take "
    "approvals.revoke approvals.rule_on "
    "inbox.accept inbox.bind inbox.connect inbox.drop inbox.retry "
    "files.forget files.put "
    "outbox.claim outbox.drop outbox.hasten outbox.label outbox.let_go outbox.release "
    "outbox.retry outbox.settle "
    "processes.ask_end processes.begin processes.born processes.ended processes.forget "
    "processes.look_elsewhere processes.remains_ended processes.report "
    "erasures.erase erasures.files_gone erasures.finished "
    "people.approve people.deny people.revoke people.set_role people.tell_of_roles "
    "browsers.make browsers.offer browsers.redeem browsers.revoke browsers.revoke_all browsers.use "
    "children.delegate "
    "chats.delete chats.mark chats.name minutes.note search.clear search.index "
    "retention.forget_deliveries retention.forget_lines "
    "budget.hold budget.reserve budget.settle "
    "models.bench models.lift models.put_on "
    "memory.forget memory.order memory.paint memory.painted memory.read_back "
    "memory.show memory.wish "
    "imports.commit imports.finish "
    "goals.claim goals.judged goals.move goals.unjudged goals.wake "
    "schedules.begin schedules.fire schedules.forget schedules.order schedules.reckon "
    "schedules.wish "
    "turns.answer turns.append turns.ask turns.claim turns.expire turns.fail "
    "turns.finish_call turns.note turns.postpone turns.recover turns.release turns.retry_model "
    "turns.start_call turns.summarise turns.tell_progress turns.will "
    "workers.beat workers.begin_drain workers.bury workers.end workers.end_left workers.farewells "
    "workers.report "
    "workers.request_restart workers.start".split()
)
"""Everything that writes. A new verb is added here, and to the story of `victim.py`."""


LATER = frozenset(
    f"{verb}:{moment}:{time}"
    for verb, time in (
        ("turns.claim", 3),
        ("agents.say", 2),
        ("agents.take", 3),
        ("files.put", 2),
        ("processes.look_elsewhere", 2),
    )
    for moment in ("before", "after")
)
"""Verbs that write something else, or more, when they are called again."""


BY_ITSELF = frozenset({"workers.tell_full", "outbox.hold_asked", "outbox.hold_back", "clock"})
"""What no caller of this store asks for. On a full disk the writer tells people, which
tests/crash/test_full_disk.py makes; PostgreSQL holds the outbox at its start and looks at the
clock in each batch."""


def verbs_asked() -> Counter[str]:
    """How often the sources ask for each verb, by its name or by a constant that holds it."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    constants = dict(re.findall(r"^([A-Z_]+) = \"([a-z_.]+)\"$", text, re.MULTILINE))
    asked = re.findall(r"(?:\.write|\bSubmitted)\(\s*(?:\"([^\"]+)\"|([A-Z_]+)\b)", text)
    return Counter(name or constants[constant] for name, constant in asked)


def test_the_verbs_that_write_are_known() -> None:
    """Issue 13, A2: also the one that the writer puts in front of a batch."""
    assert set(verbs_asked()) == VERBS | BY_ITSELF


def test_a_name_belongs_to_one_verb() -> None:
    """Two verbs of one name would share their crash points."""
    asked = verbs_asked()

    assert {verb for verb in VERBS if asked[verb] != 1} == set()


def content_of(path: Path) -> str:
    """All rows of all tables, shortened to a word; the random id of the home is no difference."""
    connection = apsw.Connection(str(path / "koboshi.db"))
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
    rows = [(name, connection.execute(f"SELECT * FROM {name}").get) for (name,) in tables]
    random_ids = connection.execute("SELECT random FROM send_ids").fetchall()
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    told = repr(rows).replace((path / ID_NAME).read_text().strip(), "this home")
    for (random,) in random_ids:
        told = told.replace(str(random), "this database")
    return hashlib.sha256(told.encode()).hexdigest()


async def contents_along_the_story(path: Path) -> tuple[list[str], list[str]]:
    """The verbs in order, and what the file holds before the first and after each of them."""
    home = await open_here(path)
    verbs, contents = [], [content_of(path)]
    async for verb in story(home):
        verbs.append(verb)
        contents.append(content_of(path))
    await home.store.close()
    return verbs, contents


@pytest.mark.slow
def test_each_verb_is_all_or_nothing_at_both_of_its_crash_points(tmp_path: Path) -> None:
    """S6, S10, S158: killed before, nothing of it is stored; killed after, all of it is. `make
    test` kills one verb in four before and another one after its commit, `make torture` all at
    both; what is there before one is there after another."""
    verbs, contents = asyncio.run(contents_along_the_story(tmp_path / "whole"))
    assert set(verbs) == VERBS
    assert len(set(contents)) == len(contents), "a verb that changes nothing proves nothing"
    points = [f"{verb}:{moment}" for verb in sorted(VERBS) for moment in ("before", "after")]
    points = points if WANTS_ALL else [*points[::8], *points[3::8]]
    points += sorted(LATER)

    said = subprocess.run(
        [sys.executable, "-m", "tests.harness.victim", "stories", str(tmp_path)],
        input="\n".join(points),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )

    ends = dict(line.split() for line in said.stdout.splitlines())
    assert ends == dict.fromkeys(points, str(-signal.SIGKILL)), said.stderr
    for point in points:
        verb, moment, *rest = point.split(":")
        times = [place for place, name in enumerate(verbs) if name == verb]
        place = times[int(rest[0]) - 1 if rest else 0]
        expected = contents[place + (moment == "after")]
        assert content_of(tmp_path / point) == expected, point


def test_the_environment_says_where_to_die(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.harness.victim", "story", str(tmp_path)],
        env={**os.environ, VARIABLE: "turns.answer:after"},
        cwd=ROOT,
        check=False,
    )

    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "specification",
    [
        "turns.answer",
        "turns.answer:during",
        "turns.answer:",
        ":",
        "turns.answer:after:soon",
        "turns.answer:after:-1",
        "turns.answer:after:1:2",
    ],
)
async def test_a_place_that_cannot_be_understood_is_refused(
    tmp_path: Path, specification: str
) -> None:
    """Also by the store, which then holds nothing: the next one can open the home."""
    with pytest.raises(ValueError, match=VARIABLE):
        CrashPoint(specification)
    with pytest.raises(ValueError, match=VARIABLE):
        await open_here(tmp_path, crash_at=specification)

    home = await open_here(tmp_path)
    await home.store.close()


def test_without_a_place_no_one_dies() -> None:
    point = CrashPoint("")
    assert not point.is_armed
    for verb in VERBS:
        point.reach(verb, "before")
        point.reach(verb, "after")
