"""What must be true when a run has come to rest, from the rows and from what people saw."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from tests.harness.invariants import check_growth, check_rows
from tests.harness.rows import Row, Rows
from tests.sim.crowd import Update
from tests.sim.effects import Effects
from tests.sim.ends import end_shown_in, ends_are_told_once, is_answered
from tests.sim.life import Setting
from tests.sim.outside import (
    MESSAGE,
    SEEN_FROM_OUTSIDE,
    entries_of,
    it_comes_to_rest,
    what_is_owed_arrives,
)
from tests.sim.platform import SimPlatform
from tests.sim.power import History
from tests.sim.violations import Violated, Violation, violations_of

LINE = re.compile(r"^line \d+ of .*$", re.MULTILINE)

OUR_ERRORS = {"turn_broke", "tool_failed", "find_failed", "turn_recovered"}
"""Errors in the log that are bugs; a send that breaks off with the power is none."""


def check_run(setting: Setting, rows: Rows) -> list[Violation]:
    """Everything that is not as it must be after a run."""
    platform, effects, history = setting.platform, setting.effects, setting.history
    history.count("messages", sum(update.is_message for update in platform.updates))
    history.count("answers", len(rows.of("steps", kind="answer")))
    history.count("deliveries", len(rows.outbox))
    history.count("shown", len(platform.seen))
    history.count("asked again", len(rows.of("inbox", source="retry")))
    asked = _times_asked(rows)
    checks: list[Callable[[], None]] = [lambda: it_comes_to_rest(setting)]
    if not setting.unrest:
        checks += [
            lambda: check_rows(rows),
            lambda: _every_person_is_answered_or_told(setting, rows),
            lambda: what_is_owed_arrives(setting, rows),
            lambda: _what_was_read_is_not_announced(rows),
            lambda: ends_are_told_once(setting, rows),
        ]
    checks += [
        lambda: check_growth(setting.remains, rows),
        lambda: _nothing_is_lost(platform, rows),
        lambda: _nothing_is_said_twice(platform, asked),
        lambda: _everything_is_said_in_order(platform, rows),
        lambda: _messages_are_taken_in_order(setting, rows),
        lambda: _every_try_is_counted(platform, rows),
        lambda: _nothing_is_done_twice(effects, asked),
        lambda: _no_line_is_reported_twice(rows, history),
        lambda: _it_does_not_break(effects, history),
        *(partial(check, setting, rows) for check in SEEN_FROM_OUTSIDE),
    ]
    return [*setting.kept_waiting, *(found for check in checks for found in violations_of(check))]


def _it_does_not_break(effects: Effects, history: History) -> None:
    """A tool that finds no descriptor is no bug of the gateway."""
    excused = {"tool_failed"} if effects.starved else set()
    broken = [error for error in history.errors if error in OUR_ERRORS - excused]
    assert not broken, f"the gateway broke: {broken}"


def _nothing_is_lost(platform: SimPlatform, rows: Rows) -> None:
    """Whatever a person did is stored, once."""
    for update in platform.updates:
        stored = len(entries_of(rows, update))
        assert stored == 1, f"{update.key} is stored {stored} times"


def _every_person_is_answered_or_told(setting: Setting, rows: Rows) -> None:
    """Each message has an answer, or a person heard why it has none; strangers are not heard."""
    platform = setting.platform
    for update in platform.updates:
        if update.is_message:
            (entry,) = entries_of(rows, update)
            if entry["state"] == "ignored":
                _is_a_stranger(setting, update)
                continue
            assert _is_settled(update, entry, rows), f"nobody heard what became of {update}"
            _is_answered_itself(entry, rows)
    arrived = {seen.delivery_id for seen in platform.seen}
    for row in rows.of("outbox", state="delivered"):
        assert row["delivery_id"] in arrived, f"d{row['delivery_id']} was never seen"


def _is_answered_itself(entry: Row, rows: Rows) -> None:
    """The answer of a turn with a backlog is an answer to each of its messages. What came later,
    such as a reply to a question, is none of them."""
    steps = rows.of("steps", turn_id=entry["turn_id"]) if entry["turn_id"] else []
    joined = [step for step in steps if step["cause"] == "backlog"]
    answers = [step for step in steps if step["kind"] == "answer"]
    if not joined or not answers:
        return
    newest = [step for step in steps if step["kind"] == "message"][-1]
    if newest["seq"] > joined[0]["seq"]:
        return  # newer words have taken the place of older ones
    if not any(step["cause"] == f"entry:{entry['entry_id']}" for step in steps):
        return
    for key in MESSAGE.findall(rows.body(entry)["text"]):
        said = MESSAGE.findall(rows.body(answers[0])["text"])
        assert key in said, f"{key} was joined to t{entry['turn_id']} and not answered"


def _is_a_stranger(setting: Setting, update: Update) -> None:
    until_s = setting.platform.acknowledged[update.key]
    is_known = setting.circle.is_always(update.sender, True, update.at_s, until_s)
    assert not is_known, f"{update} was ignored, and {update.sender} was allowed"


def _is_settled(update: Update, entry: Row, rows: Rows) -> bool:
    if entry["state"] == "dropped":
        return _is_told(entry, rows)
    turn = rows.one("turns", turn_id=entry["turn_id"])
    mine = [row["cause"] for row in rows.of("outbox", turn_id=turn["turn_id"])]
    match turn["event"]:
        case "settled":
            answer = rows.one("steps", turn_id=turn["turn_id"], kind="answer")
            return f"step:{answer['seq']}" in mine
        case "erred":
            return f"failure:{turn['turn_id']}" in mine
        case "gave-up":
            return any(cause.startswith("verdict:") for cause in mine)
        case "expired":
            return any(cause.startswith("expired:") for cause in mine)
        case "declined":
            said_no = any(cause.startswith("declined:") for cause in mine)
            return said_no or _is_followed(turn, rows)
        case "cut" | "dropped":
            return _was_cut_short(turn["session_id"], rows)
        case "interrupted":
            return _is_followed(turn, rows)
        case "cleared" if turn["rule"] == "not-allowed-behind":
            return _is_followed(turn, rows)  # who lost the right is not told
        case "cleared":
            return f"cleared:{turn['turn_id']}" in mine
        case _:
            return False


def _is_told(entry: Row, rows: Rows) -> bool:
    if entry["reason"] == "cut":
        return _was_cut_short(entry["session_id"], rows)
    return bool(rows.of("outbox", cause=f"refused:{entry['entry_id']}"))


def _was_cut_short(session_id: int, rows: Rows) -> bool:
    """A person said so, and had a reply."""
    commands = rows.of("inbox", session_id=session_id, kind="command")
    return any(rows.of("outbox", cause=f"command:{row['entry_id']}") for row in commands)


def _is_followed(turn: Row, rows: Rows) -> bool:
    """Other words of theirs have taken its place."""
    later = rows.of("turns", session_id=turn["session_id"])
    return any(row["turn_id"] > turn["turn_id"] for row in later)


def _times_asked(rows: Rows) -> Counter[str]:
    """How often each message was put to the agent: once, and once more for each `/retry`."""
    asked = [json.loads(step["body"])["text"] for step in rows.of("steps", kind="message")]
    return Counter(key for text in asked for key in set(MESSAGE.findall(text)))


def _nothing_is_said_twice(platform: SimPlatform, asked: Counter[str]) -> None:
    plain = Counter(seen.delivery_id for seen in platform.seen if not seen.is_labelled)
    for delivery_id, count in plain.items():
        assert count == 1, f"d{delivery_id} was said {count} times without a label"
    answers = Counter(
        (seen.chat, seen.text)
        for seen in platform.seen
        if not seen.is_labelled and seen.text.startswith("answer m")
    )
    for (chat, text), count in answers.items():
        for key in MESSAGE.findall(text):
            assert count <= asked[key], f"{chat} read {text[:30]!r} {count} times"


def _everything_is_said_in_order(platform: SimPlatform, rows: Rows) -> None:
    """Only the reply to a command may overtake what waits. What a chat that has moved refused is
    said where it is now, and something may have been said there before."""
    sessions = {row["delivery_id"]: row["session_id"] for row in rows.outbox}
    replies = {row["delivery_id"] for row in rows.outbox if row["cause"].startswith("command:")}
    said: dict[int, list[int]] = defaultdict(list)
    # A reply to a command may overtake what has to wait.
    replies = {row["delivery_id"] for row in rows.outbox if row["cause"].startswith("command:")}
    tried = {row["delivery_id"] for row in rows.outbox if row["attempts"] > 1}
    for seen in platform.seen:
        is_brought = seen.delivery_id in tried and seen.chat in platform.moved.values()
        if seen.delivery_id in replies or is_brought:
            continue
        mine = said[sessions[seen.delivery_id]]
        if seen.delivery_id not in mine:
            mine.append(seen.delivery_id)
    for session_id, order in said.items():
        assert order == sorted(order), f"session {session_id} read {order}"


def _messages_are_taken_in_order(setting: Setting, rows: Rows) -> None:
    """First in, first out: turns of a session begin with ever newer entries. Entries of a person
    who lost the right for a while are overtaken by those of others, and stay in order."""
    senders = {row["entry_id"]: str(row["sender"]) for row in rows.inbox}
    barred = {person for _, person, is_allowed in setting.circle.changes if not is_allowed}
    for session in rows.sessions:
        begun = []
        for turn in rows.of("turns", session_id=session["session_id"]):
            steps = rows.of("steps", turn_id=turn["turn_id"])
            causes = [step["cause"] for step in steps if step["cause"].startswith("entry:")]
            begun.append(int(causes[0].removeprefix("entry:")))
        others = [entry for entry in begun if senders[entry] not in barred]
        of_each = [[e for e in begun if senders[e] == person] for person in barred]
        for order in (others, *of_each):
            assert all(one < other for one, other in pairwise(order)), f"taken in the order {begun}"


def _every_try_is_counted(platform: SimPlatform, rows: Rows) -> None:
    """What is counted only after it was done is not counted when a person dies over it."""
    attempts = {row["delivery_id"]: row["attempts"] for row in rows.outbox}
    for delivery_id, count in platform.tried.items():
        counted = attempts[delivery_id]
        assert count <= counted, f"d{delivery_id} was tried {count} times; {counted} are counted"


def _nothing_is_done_twice(effects: Effects, asked: Counter[str]) -> None:
    strict = ("do_once ", "do_resumable ", "guarded ")
    done = {key: count for key, count in effects.ran.items() if key.startswith(strict)}
    for what, count in {**done, **effects.started}.items():
        (key,) = MESSAGE.findall(what)
        if count > asked[key]:
            number = "A4" if key in effects.starved else ""
            raise Violated(f"{what!r} was done {count} times", number)


def _what_was_read_is_not_announced(rows: Rows) -> None:
    """A result that shows how a process ended is the last word about it: no turn hears of that end
    again, nor does the person, if the turn that has read it was answered."""
    read: dict[str, int] = {}
    for step in rows.of("steps", kind="result"):
        ended = end_shown_in(json.loads(step["body"])["text"])
        if ended is not None:
            read.setdefault(ended, step["seq"])
    for entry in rows.of("inbox", kind="report"):
        report = json.loads(entry["body"])
        seq = read.get(f"p{report['process_id']}")
        if report["kind"] != "exit" or seq is None or entry["state"] == "dropped":
            continue
        heard = rows.of("steps", cause=f"entry:{entry['entry_id']}")
        is_said = is_answered(rows.one("steps", seq=seq)["turn_id"], rows)
        told = rows.of("outbox", cause=f"report:{entry['entry_id']}") if is_said else []
        is_after = any(step["seq"] > seq for step in heard) or any(
            _is_owed_after(rows, row, seq) for row in told
        )
        assert not is_after, f"process {report['process_id']} was announced after it was read"


def _is_owed_after(rows: Rows, delivery: Row, seq: int) -> bool:
    """Whether a delivery was stored in a later commit than a step. Clocks are set, so the journal
    tells: what was stored in one commit has one time."""
    lines = [line["seq"] for line in rows.of("journal", at_ms=delivery["created_ms"])]
    stored = rows.one("journal", subject="step", number=seq)["seq"]
    return min(lines, default=0) > stored


def _no_line_is_reported_twice(rows: Rows, history: History) -> None:
    """Whatever watches a process tells of each line that matches at most once."""
    told: Counter[str] = Counter()
    for entry in rows.of("inbox", kind="report"):
        report = json.loads(entry["body"])
        if report["kind"] == "match":
            told.update(LINE.findall(report["output"]))
    history.count("matches", sum(told.values()))
    for line, count in told.items():
        assert count == 1, f"{line!r} was reported {count} times"
