"""The ends of background processes, from the chair of the person: each is told once."""

import json
import re

from tests.harness.rows import Row, Rows
from tests.sim.life import Setting


def ends_are_told_once(setting: Setting, rows: Rows) -> None:
    """Issue 13, B11: by the model or by the gateway, unless a person has asked for the end."""
    for process in rows.processes:
        is_silent = process["foreground"] or process["end_asked_ms"] is not None
        if process["ended_ms"] is None or is_silent:
            continue
        name = f"p{process['process_id']}"
        entries = rows.of("inbox", source="process", external_id=f"{process['process_id']}:end")
        assert len(entries) == 1, f"the end of {name} was filed {len(entries)} times"
        (entry,) = entries
        ours = _told_by_the_gateway(setting, name)
        turn_id = _turn_that_knew(entry, name, rows)
        by_model = turn_id is not None and (
            _is_told_by_the_model(setting, entry, turn_id, rows)
            or _is_quoted(setting, entry, turn_id, rows)
        )
        if ours + by_model == 0 and _is_refused(setting, entry, turn_id, rows):
            continue
        said = f"{ours} times by the gateway and {int(by_model)} times by the model"
        assert ours + by_model == 1, f"the end of {name} was told {said}"
        setting.history.count("ends told by the model" if by_model else "ends told by the gateway")


def end_shown_in(text: str) -> str | None:
    """The process whose end a result shows."""
    try:
        result = json.loads(text)
    except ValueError:
        return None
    is_end = isinstance(result, dict) and (
        result.get("status") in ("exited", "killed", "already_exited", "lost")
    )
    return result.get("process_id") if is_end else None


def is_answered(turn_id: int, rows: Rows) -> bool:
    """Whether a turn has an answer of which nothing was taken back."""
    answers = rows.of("steps", turn_id=turn_id, kind="answer")
    parts = [row for each in answers for row in rows.of("outbox", cause=f"step:{each['seq']}")]
    return bool(parts) and all(row["state"] != "abandoned" for row in parts)


def _told_by_the_gateway(setting: Setting, name: str) -> int:
    """How many lines of ours the person saw that say how it ended."""
    line = re.compile(rf"^Background process {name} \(.*\) (exited|killed|lost)\b", re.MULTILINE)
    seen = setting.platform.seen
    return len({each.delivery_id for each in seen if line.search(each.text)})


def _turn_that_knew(entry: Row, name: str, rows: Rows) -> int | None:
    """The turn that was told of the end by a note, or else the first one that looked."""
    if entry["turn_id"] is not None:
        return int(entry["turn_id"])
    if entry["state"] != "dropped":
        return None
    for step in rows.of("steps", kind="result"):
        if end_shown_in(json.loads(step["body"])["text"]) == name:
            return int(step["turn_id"])
    return None


def _is_told_by_the_model(setting: Setting, entry: Row, turn_id: int, rows: Rows) -> bool:
    if not is_answered(turn_id, rows):
        return False
    steps = rows.of("steps", turn_id=turn_id)
    requests = [step for step in steps if step["cause"].startswith("entry:")]
    if entry["turn_id"] == turn_id and len(requests) == 1:
        return True
    name = f"p{json.loads(entry['body'])['process_id']}"
    results = [json.loads(step["body"])["text"] for step in steps if step["kind"] == "result"]
    if name in map(end_shown_in, results):
        return True
    (answer,) = [step for step in steps if step["kind"] == "answer"]
    parts = {row["delivery_id"] for row in rows.of("outbox", cause=f"step:{answer['seq']}")}
    seen = [each.text for each in setting.platform.seen if each.delivery_id in parts]
    return any(re.search(rf"\b{name}\b", text) for text in seen)


def _is_quoted(setting: Setting, entry: Row, turn_id: int, rows: Rows) -> bool:
    """Whether the person saw all of it in an apology or an offer, which names a turn by the report
    that opened it."""
    headline = json.loads(entry["body"])["headline"].removesuffix(":")
    mine = {row["delivery_id"] for row in rows.of("outbox", turn_id=turn_id)}
    seen = [each for each in setting.platform.seen if each.delivery_id in mine]
    return any(f"«{headline}" in each.text for each in seen)


def _is_refused(setting: Setting, entry: Row, turn_id: int | None, rows: Rows) -> bool:
    """Whether the platform did not take what would have told it."""
    mine = rows.of("outbox", cause=f"report:{entry['entry_id']}")
    mine += rows.of("outbox", turn_id=turn_id) if turn_id is not None else []
    return any(row["state"] in ("rejected", "abandoned") for row in mine)
