"""What must be true of every idle gateway, however often it was killed before."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from tests.harness.backlogs import check_messages_of_turns
from tests.harness.client import WORDS, Client, Event
from tests.harness.heard_children import check_children
from tests.harness.rows import Row, Rows

MARK = "[koboshi]"
OPEN = {"queued", "running", "waiting", "suspended"}
CLOSED = {"done", "stopped", "failed"}
DEATHS_MAX = 3
"""In a row, without a step in between."""
SETTLED = {"delivered", "rejected", "abandoned"}
NO_ENDS = ("step:", "progress:", "outage:")
"""Causes of deliveries that do not tell how a turn ended."""

LASTED = re.compile(r"\bafter \d+ (d|h|min|s)( \d+ (h|min|s))?:")
"""How long a process took, in a report of its end."""

Line: TypeAlias = tuple[str, ...]


def check_rows(rows: Rows) -> None:
    """The rows of an idle gateway: everything came to an end, once, in order."""
    assert rows.damage == []
    _every_message_has_its_place(rows)
    check_messages_of_turns(rows)
    check_children(rows)
    _every_turn_is_over(rows)
    _generations_do_not_mix(rows)
    _the_transcript_is_sound(rows)
    _every_delivery_is_settled_in_order(rows)
    _every_verdict_is_explained(rows)


def check_growth(remains: Sequence[Rows], final: Rows) -> None:
    """S158: the rows after each kill are the beginning of the present rows: nothing was taken back,
    reordered or put in between."""
    for earlier in remains:
        for table in ("steps", "journal"):
            before, after = getattr(earlier, table), getattr(final, table)
            assert after[: len(before)] == before, f"{table} did not only grow"
        assert {row["entry_id"] for row in earlier.inbox} <= {
            row["entry_id"] for row in final.inbox
        }
        for turn in earlier.turns:
            (now,) = final.of("turns", turn_id=turn["turn_id"])
            assert now["epoch"] >= turn["epoch"]
            assert turn["closed_ms"] is None or now == turn, "a closed turn changed"
        opened = Counter(turn["session_id"] for turn in earlier.turns if turn["state"] in OPEN)
        assert all(count == 1 for count in opened.values()), "two open turns in one session"
        for delivery in earlier.outbox:
            (now,) = final.of("outbox", delivery_id=delivery["delivery_id"])
            assert delivery["settled_ms"] is None or now == delivery, "it was settled twice"


def check_person(person: Client, rows: Rows, told_from_start: Sequence[Event]) -> None:
    """A person's events, against the stored rows, and against the events of a new follower."""
    events = [event for event in person.events if event.place is not None]
    places = [event.place for event in events if event.place is not None]
    assert all(before < after for before, after in pairwise(places)), person.told()
    newcomer = [event for event in told_from_start if event.place is not None]
    assert newcomer == events, "a newcomer is told something else"
    _each_delivery_was_told_once(person, events, rows)
    _each_acknowledged_message_is_stored_once(person, rows)


def transcript(rows: Rows, chat: str, thread: str = "") -> list[list[Line]]:
    """The turns of a chat as lists of what was said and done, without what differs from run to run
    and without the notes that a recovery leaves."""
    turns: dict[int, list[Line]] = defaultdict(list)
    order = {(call["turn_id"], call["call_id"]): call["place"] for call in rows.calls}
    for step in rows.of("steps", session_id=rows.session(chat, thread)):
        line = _line(step, json.loads(step["body"]), order)
        if line is not None:
            turns[step["turn_id"]].append(line)
    return [_with_results_in_order(turn) for turn in turns.values()]


def answers(rows: Rows, chat: str, thread: str = "") -> list[str]:
    """The answers of a chat, in order."""
    session_id = rows.session(chat, thread)
    found = rows.of("steps", session_id=session_id, kind="answer")
    return [json.loads(step["body"])["text"] for step in found]


def _every_message_has_its_place(rows: Rows) -> None:
    """No accepted message and no report is lost: it is in a turn, or a person was told, or it was
    dropped with a reason."""
    for entry in rows.inbox:
        assert entry["state"] != "waiting", entry
        assert entry["state"] != "dropped" or entry["reason"], entry
    turned = [row for row in rows.inbox if row["state"] == "attached"]
    steps = [json.loads(row["body"])["entry_id"] for row in rows.of("steps", kind="message")]
    assert len(steps) == len(set(steps)), "a message is in the transcript twice"
    assert set(steps) <= {entry["entry_id"] for entry in turned}
    causes = Counter(row["cause"] for row in rows.of("steps", kind="note"))
    for entry in turned:
        if entry["kind"] == "report":
            assert causes[f"entry:{entry['entry_id']}"] == 1, "a report is heard once"


def _every_turn_is_over(rows: Rows) -> None:
    """One answer for a turn that is done; one apology or reason for one that is not."""
    answered = Counter(step["turn_id"] for step in rows.of("steps", kind="answer"))
    below = {child["own_session"] for child in rows.children}  # their parents hear of it
    for turn in rows.turns:
        assert turn["state"] in CLOSED, turn
        assert answered[turn["turn_id"]] == int(turn["state"] == "done"), turn
        assert turn["crash_streak"] <= DEATHS_MAX, f"tried over and over: {turn}"
        if turn["state"] != "done":
            assert turn["reason"], turn
        if turn["state"] == "failed" and turn["session_id"] not in below:
            told = rows.of("outbox", turn_id=turn["turn_id"])
            causes = [row["cause"] for row in told if not row["cause"].startswith(NO_ENDS)]
            assert len(causes) == 1, f"{causes} instead of one apology"


def _generations_do_not_mix(rows: Rows) -> None:
    """Nothing of an old generation reaches a session: generations of turns only grow, and a turn
    hears only entries of its own."""
    for session in rows.sessions:
        turns = rows.of("turns", session_id=session["session_id"])
        assert _grows(turn["generation"] for turn in turns), "a turn of an old generation"
        assert all(turn["generation"] <= session["generation"] for turn in turns)
    born = {turn["turn_id"]: turn["generation"] for turn in rows.turns}
    for entry in rows.of("inbox", state="attached"):
        is_old = entry["generation"] is not None and entry["generation"] != born[entry["turn_id"]]
        assert not is_old, f"heard in another generation: {entry}"


def _the_transcript_is_sound(rows: Rows) -> None:
    """S158, S163: turns of a session do not interleave, epochs only grow, every call has one result
    behind its reply, the answer is the last step, and no message was made up."""
    for session in rows.sessions:
        steps = rows.of("steps", session_id=session["session_id"])
        assert _grows(step["turn_id"] for step in steps), "two turns at once"
        _summaries_cover_more_and_more(steps)
        for turn_id in dict.fromkeys(step["turn_id"] for step in steps):
            _check_turn([step for step in steps if step["turn_id"] == turn_id], rows)


def _summaries_cover_more_and_more(steps: Sequence[Row]) -> None:
    """Each covers more than the one before, and only existing steps."""
    covered = 0
    for step in steps:
        if step["kind"] == "summary":
            body = json.loads(step["body"])
            assert covered < body["covers"] < step["seq"], "a summary of nothing new"
            assert body["text"].strip()
            covered = body["covers"]


def _check_turn(steps: Sequence[Row], rows: Rows) -> None:
    assert _grows(step["epoch"] for step in steps)
    kinds = [step["kind"] for step in steps]
    reported = any(step["cause"].startswith("entry:") for step in steps if step["kind"] == "note")
    assert "message" in kinds or reported, "a turn without a request"
    assert "answer" not in kinds[:-1], "something was said after the answer"
    notes = Counter(step["epoch"] for step in steps if step["cause"] == "recovery")
    assert all(count == 1 for count in notes.values()), "two recovery notes for one life"
    proposed: list[str] = []
    resolved: list[str] = []
    for step in steps:
        body = json.loads(step["body"])
        match step["kind"]:
            case "message":
                assert body["text"].strip(), "a blank message"
                assert not body["text"].startswith(MARK), "a note as a person's words"
            case "note":
                assert body["text"].startswith(MARK)
            case "reply":
                assert sorted(proposed) == sorted(resolved), "the model went on without results"
                proposed += [call["call_id"] for call in body["calls"]]
            case "result":
                assert body["call_id"] in proposed
                resolved.append(body["call_id"])
            case _:
                pass
    assert sorted(proposed) == sorted(resolved), "a call without a result, or with two"
    calls = rows.of("calls", turn_id=steps[0]["turn_id"])
    assert sorted(call["call_id"] for call in calls) == sorted(proposed)
    assert all(call["finished_ms"] or call["skipped_ms"] for call in calls)


def _every_delivery_is_settled_in_order(rows: Rows) -> None:
    """Everything owed ended, with a reason where it did not arrive; first in, first out. A reply to
    a command may overtake what has to wait. Tries do not count: what a chat that has moved refused
    is tried again behind the deliveries where it is now."""
    arrived = rows.of("journal", subject="delivery", event="delivered")
    settled = [row["number"] for row in arrived]
    for session in rows.sessions:
        mine = rows.of("outbox", session_id=session["session_id"])
        assert all(row["state"] in SETTLED for row in mine), mine
        assert all(row["state"] == "delivered" or row["reason"] for row in mine)
        delivered = [
            row["delivery_id"]
            for row in mine
            if row["state"] == "delivered" and not row["cause"].startswith("command:")
        ]
        order = [number for number in settled if number in delivered]
        assert order == delivered, "out of order"
        parts: dict[str, list[int]] = defaultdict(list)
        for row in mine:
            parts[row["cause"]].append(row["part"])
        assert all(found == list(range(1, len(found) + 1)) for found in parts.values())


def _every_verdict_is_explained(rows: Rows) -> None:
    """S161: each act of recovery has its rule and its reason in the journal."""
    for line in rows.of("journal", subject="turn"):
        if line["event"] in ("prompted", "parked", "cleared", "gave-up"):
            assert line["rule"], line
            assert line["reason"], line
        if line["event"] == "resumed":
            assert line["reason"], line


def _each_delivery_was_told_once(person: Client, events: Sequence[Event], rows: Rows) -> None:
    sessions = [row["session_id"] for row in rows.of("sessions", chat=person.chat)]
    delivered = [
        row for row in rows.of("outbox", state="delivered") if row["session_id"] in sessions
    ]
    told = [event for event in events if event.kind in WORDS]
    by_id = {event.fields["delivery"]: event for event in told}
    assert len(by_id) == len(told), f"words were told twice. {person.told()}"
    assert sorted(by_id) == sorted(f"d{row['delivery_id']}" for row in delivered), person.told()
    for row in delivered:
        event = by_id[f"d{row['delivery_id']}"]
        assert (event.fields["text"], event.fields["part"]) == (row["text"], row["part"])
    _parts_make_up_their_answers(told, rows)


def _parts_make_up_their_answers(told: Sequence[Event], rows: Rows) -> None:
    parts: dict[str, list[Event]] = defaultdict(list)
    for event in told:
        if event.kind == "answer":
            parts[event.fields["cause"]].append(event)
    for cause, events in parts.items():
        numbers = [event.fields["part"] for event in events]
        assert numbers == list(range(1, events[0].fields["parts"] + 1)), "parts out of order"
        step = rows.one("steps", seq=int(cause.removeprefix("step:")))
        text = "".join(event.fields["text"] for event in events)
        assert text == json.loads(step["body"])["text"]


def _each_acknowledged_message_is_stored_once(person: Client, rows: Rows) -> None:
    for key, ack in person.acks.items():
        entry = rows.one("inbox", external_id=f"{person.chat}/{key}")
        assert f"m{entry['entry_id']}" == ack.message


def _line(step: Row, body: Mapping[str, Any], order: Mapping[tuple[int, str], int]) -> Line | None:
    kind = step["kind"]
    match kind:
        case "message" | "answer" | "question":
            return kind, LASTED.sub("after a while:", body["text"])
        case "reply":
            calls = [f"{call['tool']} {call['arguments']}" for call in body["calls"]]
            return kind, body["text"], *calls
        case "result":
            place = order[step["turn_id"], body["call_id"]] % 1_000
            return kind, f"{place}", body["status"], body["text"]
        case "note" if step["cause"] == "recovery":
            return None
        case _:
            return kind, step["cause"]


def _with_results_in_order(turn: Sequence[Line]) -> list[Line]:
    """Calls that ran side by side end in any order."""
    lines: list[Line] = []
    results: list[Line] = []
    for line in turn:
        if line[0] == "result":
            results.append(line)
            continue
        lines += [*sorted(results), line]
        results = []
    return [*lines, *sorted(results)]


def _grows(numbers: Iterable[int]) -> bool:
    return all(before <= after for before, after in pairwise(numbers))
