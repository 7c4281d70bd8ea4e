"""What the model and the tools of a watched gateway saw, over all of its lives."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.rows import Row, Rows

STRICT = {"once", "resumable"}
"""Effects that happen at most once, after any death."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One time that a call was run, or taken up again."""

    turn_id: int
    call_id: str
    tool: str
    effect: str
    is_resumed: bool


@dataclass(slots=True)
class Seen:
    asked: dict[int, list[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(list))
    """For each turn, the steps of it that the model was shown, each time it was asked. (It is
    shown the results in the order of their calls, which may end in another.)"""
    ran: list[Ran] = field(default_factory=list)
    verbs: Counter[str] = field(default_factory=Counter)
    """How often the store was asked for each verb."""
    held: Counter[str] = field(default_factory=Counter)
    """How often each held point was reached."""


def read_seen(file: Path) -> Seen:
    """All records; a line that a kill cut off does not count."""
    seen = Seen()
    lines = file.read_text(encoding="ascii").split("\n")[:-1] if file.exists() else []
    for line in map(json.loads, lines):
        match line["what"]:
            case "ask":
                seen.asked[line["turn"]].append(tuple(sorted(line["shown"])))
            case "verb":
                seen.verbs[line["verb"]] += 1
            case "held":
                seen.held[line["point"]] += 1
            case what:
                ran = Ran(
                    turn_id=line["turn"],
                    call_id=line["call"],
                    tool=line["tool"],
                    effect=line["effect"],
                    is_resumed=what == "resume",
                )
                seen.ran.append(ran)
    return seen


def check_seen(seen: Seen, rows: Rows, deaths: int) -> None:
    """The model is shown what is stored and nothing else, and is not asked again without a reason;
    strict calls ran once."""
    for turn_id, asked in seen.asked.items():
        _check_asked(rows.one("turns", turn_id=turn_id), asked, rows, deaths)
    for turn in rows.of("turns", state="done"):
        assert turn["turn_id"] in seen.asked, f"nobody asked the model for {turn}"
    _check_ran(seen, rows, deaths)


def _check_asked(turn: Row, asked: list[tuple[int, ...]], rows: Rows, deaths: int) -> None:
    """S158: each request showed the beginning of the final turn."""
    mine = rows.of("steps", turn_id=turn["turn_id"])
    # The model knows its questions by its calls, and sees only the newest note of recovery.
    passed_over = {
        step["seq"] for step in mine if step["kind"] == "question" or step["cause"] == "recovery"
    }
    steps = [step for step in mine if step["seq"] not in passed_over]
    is_summed_up = bool(rows.of("steps", session_id=turn["session_id"], kind="summary"))
    answers = {step["seq"] for step in steps if step["kind"] == "answer"}
    for shown in asked:
        stored = tuple(step["seq"] for step in steps if step["seq"] <= max(shown, default=0))
        told = tuple(seq for seq in shown if seq not in passed_over)
        assert is_summed_up or told == stored, f"the model was shown {told}, stored is {stored}"
        assert not answers & set(shown), "the model was asked after it had answered"
    is_patient = turn["model_tries"] or rows.of(
        "journal", number=turn["turn_id"], event="postponed"
    )
    again = max(Counter(asked).values())
    assert is_patient or again <= 1 + deaths, f"the same was asked {again} times"


def _check_ran(seen: Seen, rows: Rows, deaths: int) -> None:
    """S159: a run was stored as started, strict ones ran once, a result is of a run."""
    calls = {(call["turn_id"], call["call_id"]): call for call in rows.calls}
    runs = Counter((ran.turn_id, ran.call_id) for ran in seen.ran if not ran.is_resumed)
    for ran in seen.ran:
        place = ran.turn_id, ran.call_id
        assert calls[place]["started_ms"] is not None, f"{ran} ran before it was stored"
        most = 1 if ran.effect in STRICT else 1 + deaths
        assert runs[place] <= most, f"{ran} ran {runs[place]} times"
    results = {
        (step["turn_id"], body["call_id"]): body["status"]
        for step in rows.of("steps", kind="result")
        for body in [json.loads(step["body"])]
    }
    used = {(ran.turn_id, ran.call_id) for ran in seen.ran}
    for place, status in results.items():
        is_told = status == "ok" and calls[place]["need"] != "answer"
        assert not is_told or place in used, f"{calls[place]} has a result and never ran"
