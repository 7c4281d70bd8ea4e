"""What must be true of children in every idle gateway: each parent hears of each child once."""

import json
from collections import Counter

from tests.harness.rows import Row, Rows


def check_children(rows: Rows) -> None:
    """Issue 21: no child is lost or doubled, and neither is its end, whatever kills came between.
    What it says to people directly are questions, and what becomes of a press on one."""
    made = Counter((row["turn_id"], row["call_id"]) for row in rows.children)
    assert all(count == 1 for count in made.values()), "a call has two children"
    for call in rows.of("calls", tool="delegate", outcome="ok"):
        assert made[call["turn_id"], call["call_id"]] == 1, f"a call without its child: {call}"
    ends = Counter(row["external_id"] for row in rows.of("inbox", kind="child"))
    assert set(ends) == {str(row["child_id"]) for row in rows.children}, "an end of no child"
    for child in rows.children:
        _check_child(child, rows)


def _check_child(child: Row, rows: Rows) -> None:
    name = f"a{child['child_id']}"
    assert child["state"] == "ended", f"{name} has not ended"
    entry = rows.one("inbox", kind="child", external_id=str(child["child_id"]))
    assert entry["session_id"] == child["session_id"], f"{name} is told to another session"
    heard = rows.of("steps", cause=f"entry:{entry['entry_id']}")
    if entry["state"] == "dropped":
        assert entry["reason"], name
        assert not heard, f"{name} is dropped and heard"
        return
    assert entry["state"] == "attached", f"the end of {name} is {entry['state']}"
    (note,) = heard
    assert note["session_id"] == child["session_id"], f"{name} is heard elsewhere"
    assert f"Sub-agent {name} " in json.loads(note["body"])["text"]
    if child["own_session"] is None:
        return
    turns = rows.of("turns", session_id=child["own_session"])
    assert turns[-1]["changed_ms"] <= note["at_ms"], f"{name} is heard of before its end"
    questions = {f"step:{step['seq']}" for step in rows.of("steps", kind="question")}
    for each in rows.of("outbox", session_id=child["own_session"]):
        is_reply = each["cause"].startswith("refused:")
        assert is_reply or each["cause"] in questions, f"{name} speaks to people: {each}"
