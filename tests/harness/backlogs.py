"""One turn per message, and the one exception: what one person sent in a row before a boot."""

import json
from collections.abc import Sequence

from tests.harness.rows import Row, Rows

BACKLOG = "backlog"
MESSAGES_MAX = 10
CHARS_MAX = 16_000
WORK = {"reply", "result", "question", "answer"}


def check_messages_of_turns(rows: Rows) -> None:
    """A turn begins with one message, or with what was sent as one, or with a backlog. All else
    that it hears came while it was at work."""
    _check_that_all_were_heard(rows)
    for turn in rows.turns:
        steps = rows.of("steps", turn_id=turn["turn_id"])
        notes = [place for place, step in enumerate(steps) if step["cause"] == BACKLOG]
        first_work = next((i for i, step in enumerate(steps) if step["kind"] in WORK), len(steps))
        begun = [step for step in steps[:first_work] if step["kind"] == "message"]
        if notes:
            assert len(notes) == 1, f"{turn['turn_id']} joined twice"
            before = [step for step in steps[: notes[0]] if step["kind"] == "message"]
            _check_backlog(turn, begun, before, rows)
        elif len(begun) > 1:
            groups = {rows.body(_entry_of(step, rows)).get("group") for step in begun}
            is_album = len(groups) == 1 and groups != {""}
            assert is_album, f"t{turn['turn_id']} began with {len(begun)} messages"


def _check_that_all_were_heard(rows: Rows) -> None:
    """A message that is in a turn is in its transcript, unless it has answered a question."""
    heard = {json.loads(step["body"])["entry_id"] for step in rows.of("steps", kind="message")}
    for entry in rows.of("inbox", kind="message", state="attached"):
        asked = rows.of("steps", turn_id=entry["turn_id"], kind="question")
        is_heard = entry["entry_id"] in heard or bool(asked)
        assert is_heard, f"m{entry['entry_id']} is in a turn and was never heard"


def _check_backlog(turn: Row, begun: Sequence[Row], joined: Sequence[Row], rows: Rows) -> None:
    name = f"t{turn['turn_id']}"
    entries = [_entry_of(step, rows) for step in joined]
    bodies = [rows.body(entry) for entry in entries]
    assert [step["seq"] for step in begun] == [step["seq"] for step in joined], name
    assert 2 <= len(entries) <= MESSAGES_MAX, f"{name} joined {len(entries)} messages"
    assert sum(len(body["text"]) for body in bodies) <= CHARS_MAX, f"{name} joined too much"
    people = {entry["sender"] for entry in entries}
    assert len(people) == 1, f"{name} joined messages of {sorted(people)}"
    assert all(body.get("busy") is None for body in bodies), f"{name} joined what was to wait"
    order = [entry["entry_id"] for entry in entries]
    assert order == sorted(order), f"{name} joined {order}"
    for other in rows.of("inbox", session_id=turn["session_id"], kind="message"):
        is_between = order[0] < other["entry_id"] < order[-1]
        is_later = (other["turn_id"] or 0) > turn["turn_id"]
        assert not (is_between and is_later), f"{name} overtook m{other['entry_id']}"
    _check_that_it_was_before_the_boot(turn, entries, rows)


def _check_that_it_was_before_the_boot(turn: Row, entries: Sequence[Row], rows: Rows) -> None:
    claims = [
        line
        for line in rows.of("journal", subject="turn", number=turn["turn_id"])
        if line["event"] == "claimed"
    ]
    if not claims:
        return  # its lines were forgotten
    boot = rows.one("workers", worker_id=claims[0]["worker_id"])
    for entry in entries:
        is_earlier = entry["accepted_by"] < boot["worker_id"]
        sent_ms = rows.body(entry)["sent_ms"]
        is_sent_before = 0 < sent_ms < _connected_ms(turn, boot, rows) and (
            boot["started_ms"] <= entry["received_ms"]
        )
        words = f"m{entry['entry_id']} was sent to the boot that joined it"
        assert is_earlier or is_sent_before, words


def _entry_of(step: Row, rows: Rows) -> Row:
    return rows.one("inbox", entry_id=json.loads(step["body"])["entry_id"])


def _connected_ms(turn: Row, boot: Row, rows: Rows) -> int:
    """When a boot first reached the platform of a turn: its beginning where there is no account.
    Of an account, only the last boot is stored, so for an earlier one it is when the next began."""
    session = rows.one("sessions", session_id=turn["session_id"])
    for account in rows.of("accounts", channel=session["channel"]):
        if account["connected_by"] == boot["worker_id"]:
            return int(account["connected_ms"])
        later = [each for each in rows.workers if each["worker_id"] > boot["worker_id"]]
        return min((int(each["started_ms"]) for each in later), default=int(boot["started_ms"]))
    return int(boot["started_ms"])
