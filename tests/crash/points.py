"""Every crash point of the path of a message, and the story in which a gateway dies there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import koboshi
from tests.harness.tally import WANTS_ALL

SOURCE = Path(koboshi.__file__).parent
MOMENTS = ("before", "after")


@dataclass(frozen=True, slots=True)
class Point:
    """Die in this story when the verb is carried out for the `time`-th time, after the lives that
    end at `first`."""

    verb: str
    story: str
    time: int = 1
    first: tuple[str, ...] = ()
    is_always_tried: bool = False
    """Also where each verb is tried once only."""

    def ends(self, moment: str) -> list[str]:
        return [*self.first, f"{self.verb}:{moment}:{self.time}"]

    def __str__(self) -> str:
        again = f"-after-{len(self.first)}-more" if self.first else ""
        return f"{self.verb}-{self.time}-{self.story}{again}"


POINTS = (
    # A second message while the first is worked on, an answer to a question, a command. (A single
    # message and its answer are in test_killed.py, moment by moment.)
    Point("inbox.accept", "follow-ups", 2),
    Point("inbox.accept", "question", 2),
    Point("inbox.accept", "stop", 3),
    Point("inbox.drop", "in-hand"),
    Point("inbox.retry", "in-hand"),
    # The first claim finds nothing: it is made when the gateway starts. The second takes the turn.
    Point("turns.claim", "echo"),
    Point("turns.claim", "echo", 2),
    Point("turns.claim", "follow-ups", 2),
    Point("turns.append", "two-tools"),
    Point("turns.start_call", "two-tools"),
    Point("turns.start_call", "two-tools", 2),
    Point("turns.finish_call", "two-tools"),
    Point("turns.finish_call", "two-tools", 3),
    Point("turns.ask", "question"),
    Point("turns.note", "empty-once"),
    Point("turns.retry_model", "busy-model"),
    Point("turns.postpone", "patience"),
    # Each call is reserved and settled; one that is killed in between counts as spent.
    Point("budget.reserve", "budget"),
    Point("budget.settle", "budget"),
    # The first model of the chain is out of reach, and the turn goes on with the second.
    Point("models.bench", "chain"),
    Point("models.put_on", "chain"),
    # The first notice of a turn, and one that comes after a restart.
    Point("turns.tell_progress", "long-wait"),
    # Of earlier turns, and of the turn that is under way.
    Point("turns.summarise", "long-talk"),
    Point("turns.summarise", "long-talk", 2),
    Point("turns.fail", "refused"),
    Point("turns.answer", "follow-ups"),
    Point("turns.answer", "long-answer"),
    Point("outbox.claim", "question"),
    Point("outbox.claim", "long-answer", 2),
    Point("outbox.settle", "question"),
    Point("outbox.settle", "long-answer", 2),
    Point("outbox.settle", "long-answer", 3),
    # The channel is up for the first time.
    Point("outbox.hasten", "echo"),
    Point("turns.recover", "recovery"),
    # While it recovers, and again while it recovers from that.
    Point("turns.recover", "recovery", 1, ("turns.recover:before",), is_always_tried=True),
    Point("workers.start", "recovery", 1, ("turns.recover:after",)),
    # The first look for questions that were not answered is made when the gateway starts.
    Point("turns.expire", "echo"),
    # A command is begun, born and ended; in the background it can be asked to end.
    Point("processes.begin", "command"),
    Point("processes.born", "command"),
    Point("processes.ended", "command"),
    Point("processes.ask_end", "killed-command"),
    # Beside a call in the foreground, and one that ends while no gateway ran.
    Point("turns.start_call", "tool-and-job", 2, is_always_tried=True),
    Point("turns.finish_call", "tool-and-job", 2),
    Point("processes.ended", "ended-while-down", is_always_tried=True),
    Point("turns.answer", "ended-while-down"),
    # In the background: its end is filed, and the turn about it is worked on, killed and resumed.
    Point("processes.born", "job"),
    Point("processes.ended", "job"),
    Point("turns.claim", "job", 3),
    Point("turns.answer", "job", 2),
    Point("processes.report", "watched"),
    Point("processes.ended", "watched"),
    Point("turns.answer", "watched", 2),
    Point("workers.start", "echo"),
    Point("workers.start", "recovery"),
    Point("workers.beat", "echo"),
    Point("workers.report", "echo"),
    Point("workers.report", "recovery"),
    # What time begins, and what the agent orders. The first look at due times is made at the start.
    Point("schedules.begin", "reminder"),
    Point("schedules.fire", "reminder"),
    Point("schedules.wish", "reminder"),
    Point("goals.claim", "standing-goal"),
    Point("goals.judged", "standing-goal"),
    # Work is given away; a sub-agent ends, and is heard of.
    Point("children.delegate", "family"),
    Point("children.delegate", "family", 3),
    Point("turns.answer", "family", 2),
    Point("turns.answer", "family", 3),
    Point("turns.answer", "family", 4),
    # The agent notes something, and the next turn is shown it. The files are written behind it.
    Point("memory.wish", "remembered", is_always_tried=True),
    Point("memory.wish", "remembered", 2),
    Point("memory.show", "remembered"),
    Point("memory.paint", "remembered"),
    Point("memory.painted", "remembered"),
    Point("memory.read_back", "remembered"),
    Point("workers.begin_drain", "stopped-gateway"),
    Point("turns.release", "stopped-gateway"),
    Point("workers.end", "stopped-gateway"),
)


def chosen() -> list[Point]:
    """The points that are tried in this run: each verb in one story and a few more, or all."""
    first = {point.verb: point for point in reversed(POINTS)}
    return [
        point
        for point in POINTS
        if WANTS_ALL or point.is_always_tried or first[point.verb] is point
    ]


def kills_in(story: str, verbs: Iterable[str]) -> list[list[str]]:
    """How the lives of a story end: once for each of the verbs and moments, and where it recovers
    from the start, a second time in a row."""
    ends = [[f"{verb}:{moment}"] for verb in sorted(verbs) for moment in MOMENTS]
    if story == "recovery":
        ends += [[at, at] for at in OVER_AND_OVER]
        ends += [[at, "turns.recover:after"] for at in OVER_AND_OVER]
    return ends


EXEMPT = {
    "accounts.take": "several gateways share a database; killed there in "
    "tests/sqlite/test_crash_points.py",
    "accounts.give_back": "likewise",
    "files.put": "likewise",
    "files.forget": "likewise",
    "outbox.let_go": "likewise",
    "processes.look_elsewhere": "likewise",
    "workers.farewells": "likewise",
    **dict.fromkeys(
        "agents.ask agents.begin agents.cancel agents.drained agents.end agents.give_up "
        "agents.propose agents.reply agents.say agents.take".split(),
        "no agent of others works in these stories; killed there in "
        "tests/agents/test_every_line.py and tests/sqlite/test_crash_points.py",
    ),
    "budget.hold": "the turn waits for an owner, or until tomorrow; killed there in "
    "tests/sqlite/test_crash_points.py",
    "models.lift": "a model gets well after seconds at least; killed there in "
    "tests/sqlite/test_crash_points.py",
    "browsers.offer": "no message is in it; killed there in tests/sqlite/test_crash_points.py",
    "browsers.redeem": "likewise",
    "schedules.reckon": "the clock went back, or the rules of zones are others; killed there in "
    "tests/sqlite/test_crash_points.py",
    "schedules.order": "only the operator comes by it; killed there in "
    "tests/sqlite/test_crash_points.py",
    "schedules.forget": "likewise, for rows that are months old",
    "goals.move": "likewise",
    "memory.order": "likewise",
    "memory.forget": "what is swept is a week old at least; killed there in "
    "tests/sqlite/test_crash_points.py",
    "goals.unjudged": "the judge did not answer; killed there in tests/sqlite/test_crash_points.py",
    "goals.wake": "a goal waits for minutes at least; killed there in "
    "tests/sqlite/test_crash_points.py",
    "retention.forget_lines": "what is swept is a week old at least; killed there in "
    "tests/sqlite/test_crash_points.py",
    "retention.forget_deliveries": "likewise",
    "workers.tell_full": "the writer itself calls it, on a full disk; killed there in "
    "tests/crash/test_full_disk.py",
    "processes.forget": "processes are swept once an hour, long after their end; killed there in "
    "tests/sqlite/test_crash_points.py",
    "processes.remains_ended": "only a person who ends a lost process comes by it; killed there in "
    "tests/sqlite/test_crash_points.py",
    "outbox.label": "the web channel repeats a send under the same key and never needs a label; "
    "killed there in tests/crash/test_rig.py, on a platform that cannot",
    "people.approve": "every person who has the token is allowed on the web; killed there in "
    "tests/cli/test_pairing.py, by the command, and in tests/sqlite/test_crash_points.py",
    "people.deny": "likewise",
    "browsers.make": "no message is in it; killed there in tests/hostile/test_browsers.py",
    "browsers.use": "likewise, once an hour at most",
    "browsers.revoke": "likewise",
    "browsers.revoke_all": "likewise",
    "chats.name": "likewise, in tests/sqlite/test_crash_points.py",
    "chats.mark": "likewise",
    "chats.delete": "likewise",
    "search.index": "it follows the commits by seconds; killed there in "
    "tests/sqlite/test_crash_points.py",
    "search.clear": "likewise",
    "minutes.note": "once a minute; likewise",
    "imports.commit": "no gateway comes by it; killed there in tests/cli/test_migrate.py",
    "imports.finish": "likewise, and by the start that follows",
    "people.revoke": "likewise",
    "people.set_role": "likewise",
    "erasures.erase": "asked by the operator or by a person; killed there in "
    "tests/sqlite/test_crash_points.py, and finished after a kill in "
    "tests/sqlite/test_erasure.py",
    "erasures.files_gone": "likewise",
    "erasures.finished": "likewise",
    "people.tell_of_roles": "likewise; it concerns homes of an earlier version",
    "approvals.revoke": "only the owner comes by it, at the command line or on the page; killed "
    "there in tests/sqlite/test_crash_points.py",
    "approvals.rule_on": "likewise",
    "inbox.bind": "the web has no accounts; killed there in tests/crash/test_telegram_accounts.py",
    "inbox.connect": "likewise",
    "turns.will": "only the operator comes by it, at the command line; killed there in "
    "tests/sqlite/test_crash_points.py",
    "outbox.retry": "likewise",
    "outbox.release": "likewise",
    "outbox.drop": "likewise",
    "workers.end_left": "only a command on a home without a gateway comes by it; killed there in "
    "tests/sqlite/test_crash_points.py",
    "workers.request_restart": "the agent restarts its own gateway; killed there in "
    "tests/crash/test_leaving.py",
}
"""Verbs that a gateway with the web channel does not come by, and why."""

OVER_AND_OVER = ("workers.start:before", "workers.start:after", "turns.recover:before")
"""Moments of a start that has taken nothing up yet: killed there again, nothing wears out."""


def verbs_of_the_store() -> set[str]:
    """Every verb that the writer is asked for by its name, or asks itself for."""
    folders = (SOURCE / "kernel", SOURCE / "stores" / "sqlite")
    texts = [path.read_text() for folder in folders for path in folder.glob("*.py")]
    asked = r'(?:\.write|\bSubmitted)\(\s*"([^"]+)"'
    return {verb for text in texts for verb in re.findall(asked, text)}


def points_beside_the_writer() -> set[str]:
    """Crash points of the store that are no verbs of its writer: they are about files."""
    texts = [path.read_text() for path in (SOURCE / "stores" / "sqlite").glob("*.py")]
    return {point for text in texts for point in re.findall(r'\.reach\(\s*"([^"]+)"', text)}
