"""What is wrong with what was seen of a gateway that has come to rest. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from koboshi.torture.check_joined import check_joined
from koboshi.torture.check_visits import check_visits
from koboshi.torture.errands import MARK, ErrandKind, exited
from koboshi.torture.faults import CLOSED, Fault, Violation
from koboshi.torture.seen import (
    ProcessRow,
    Remains,
    SeenEntry,
    SeenEvent,
    SeenSent,
    SeenTurn,
    TrialSeen,
)

SETTLED = frozenset({"delivered", "rejected", "abandoned"})
NO_ENDS = ("step:", "progress:", "command:", "drain:", "outage:", "set-aside:")
"""Causes of words that do not tell the end of a turn that failed."""
OUTAGE = "outage:"
"""How the cause begins of what is told of a model that does not answer."""


def check(seen: TrialSeen) -> list[Violation]:
    """Every broken promise, worded for a developer who looks for the cause."""
    view = _View(seen)
    found = [_violation(Fault.DAMAGE, each) for each in seen.remains.damage]
    found += [_violation(Fault.LOST, each) for each in seen.unfinished]
    for sent in seen.sent:
        found += _check_sent(view, sent)
    for chat, told in seen.told.items():
        found += _check_told(view, chat, told)
    found += _check_rest(seen.remains)
    found += _check_ledger(view)
    found += _check_jobs(view)
    found += _check_boundary(seen.remains)
    found += check_visits(seen)
    found += check_joined(seen.remains)
    return found


def answers_heard(told: Sequence[SeenEvent]) -> int:
    """How many answers a chat was told."""
    return len({each.cause for each in told if each.kind == "answer"})


class _View:
    """What was seen, by what it is looked up with."""

    def __init__(self, seen: TrialSeen) -> None:
        self.seen = seen

    @cached_property
    def entries(self) -> dict[str, list[SeenEntry]]:
        found: dict[str, list[SeenEntry]] = defaultdict(list)
        for entry in self.seen.remains.entries:
            found[entry.external_id].append(entry)
        return found

    @cached_property
    def turns(self) -> dict[int, SeenTurn]:
        return {turn.turn_id: turn for turn in self.seen.remains.turns}

    @cached_property
    def words(self) -> dict[str, list[SeenEvent]]:
        """What followers were told of each turn, in order."""
        found: dict[str, list[SeenEvent]] = defaultdict(list)
        for told in self.seen.told.values():
            for each in told:
                if each.is_words and each.turn:
                    found[each.turn].append(each)
        return found

    @cached_property
    def turns_with_messages(self) -> set[int]:
        messages = (each for each in self.seen.remains.entries if each.kind == "message")
        return {each.turn_id for each in messages if each.turn_id is not None}

    @cached_property
    def excused(self) -> set[str]:
        """Marks of commands that were killed with their runner."""
        rows = self.seen.remains.processes
        killed = self.seen.runners_killed
        return {_mark_in(row.command) for row in rows if row.process_id in killed}

    @cached_property
    def sent_as(self) -> dict[int, SeenSent]:
        """What a person on the web has sent, by the entry that it was stored as."""
        return {
            row.entry_id: sent
            for sent in self.seen.sent
            for row in self.entries[f"{sent.chat}/{sent.key}"]
        }

    def answered_with(self, sent: SeenSent) -> list[SeenSent]:
        """What is answered together with a message, and itself, in order."""
        rows = self.entries[f"{sent.chat}/{sent.key}"]
        together = self.seen.remains.joined_with(rows[0]) if len(rows) == 1 else ()
        return [self.sent_as[each] for each in together if each in self.sent_as] or [sent]

    def answer(self, turn: SeenTurn) -> str:
        """The answer of a turn as it was heard, all parts together."""
        heard = self.words[f"t{turn.turn_id}"]
        return "".join(each.text for each in heard if each.kind == "answer")

    def answered_by(self, turn: SeenTurn) -> set[str]:
        return {each.cause for each in self.words[f"t{turn.turn_id}"] if each.kind == "answer"}

    def turn_of(self, sent: SeenSent) -> SeenTurn | None:
        rows = self.entries[f"{sent.chat}/{sent.key}"]
        return self.turns.get(rows[0].turn_id or 0) if rows else None


def _violation(fault: Fault, words: str) -> Violation:
    return Violation(fault=fault, words=words)


def _check_sent(view: _View, sent: SeenSent) -> Iterator[Violation]:
    """I1: what was acknowledged is stored once, and its end was told."""
    if sent.message is None:
        return
    name = f"{sent.message} ({sent.errand.kind} {sent.errand.mark} in {sent.chat})"
    rows = view.entries[f"{sent.chat}/{sent.key}"]
    if [f"m{row.entry_id}" for row in rows] != [sent.message]:
        stored = [f"m{row.entry_id}" for row in rows]
        yield _violation(Fault.LOST, f"{name} was acknowledged; stored is {stored}")
        return
    (row,) = rows
    if sent.errand.kind is ErrandKind.ORDER:
        cause = f"command:{row.entry_id}"
        told = [each for each in view.seen.told[sent.chat] if each.cause == cause]
        if row.state != "handled" or not told:
            yield _violation(Fault.LOST, f"{name} is {row.state}, its reply was not told")
        return
    turn = view.turn_of(sent)
    if sent.errand.kind is ErrandKind.REPLY:
        # It belongs to the turn that asked, whose own message is looked at.
        return
    if turn is None:
        yield _violation(Fault.LOST, f"{name} is {row.state} ({row.reason}) and in no turn")
        return
    yield from _check_end(view, sent, turn, f"{name}, t{turn.turn_id},")


def _check_end(view: _View, sent: SeenSent, turn: SeenTurn, name: str) -> Iterator[Violation]:
    """One answer for a turn that is done, one reason for one that is not."""
    heard = view.words[f"t{turn.turn_id}"]
    ends = {each.cause for each in heard if not _is_no_end(each.cause)}
    answer = view.answer(turn)
    if turn.answers != int(turn.state == "done"):
        yield _violation(Fault.DOUBLED, f"{name} is {turn.state} with {turn.answers} answers")
    # By its cause and not by its words: not every part of an answer names what it answers.
    if len(causes := view.answered_by(turn)) > 1:
        yield _violation(Fault.DOUBLED, f"{name} was answered by {sorted(causes)}")
    told = [each.cause for each in heard if each.cause.startswith(OUTAGE)]
    if sent.errand.kind is ErrandKind.OUTAGE and len(told) > 1:
        yield _violation(Fault.DOUBLED, f"{name} was told of its outage by {told}")
    match turn.state:
        case "done" if not answer:
            yield _violation(Fault.LOST, f"{name} is done, and no answer was seen")
        case "done" if not _is_as_expected(view, sent, answer):
            yield _violation(Fault.WRONG, f"{name} was answered with {answer[:200]!r}")
        case "failed" if len(ends) != 1:
            yield _violation(Fault.LOST, f"{name} failed ({turn.reason}), told by {sorted(ends)}")
        case "stopped" if sent.errand.kind is not ErrandKind.STOP:
            yield _violation(
                Fault.LOST, f"{name} was stopped ({turn.reason}), and no stop was asked for"
            )
        case state if state not in CLOSED:
            yield _violation(Fault.LOST, f"{name} is {state}, and nothing happens any more")
        case _:
            return


def _is_excused(view: _View, sent: SeenSent) -> bool:
    return sent.errand.mark in view.excused


def _is_no_end(cause: str) -> bool:
    return cause.startswith(NO_ENDS)


def _is_as_expected(view: _View, sent: SeenSent, answer: str) -> bool:
    """Whether the whole answer is the one that the errand is to have, or those of a backlog, one
    behind the other."""
    together = view.answered_with(sent)
    if any(_is_excused(view, each) for each in together):
        return True
    wanted = "\n\n".join(f"(?:{each.errand.answer})" for each in together)
    return re.fullmatch(wanted, answer, re.DOTALL) is not None


def _check_told(view: _View, chat: str, told: Sequence[SeenEvent]) -> Iterator[Violation]:
    """I3, I6: each text once, in order, the same for every follower, and all that was delivered."""
    words = [each for each in told if each.is_words]
    for kind, keys in (
        ("delivery", [each.delivery for each in words]),
        ("part", [f"{each.cause}#{each.part}" for each in words]),
    ):
        for key in _repeated(keys):
            yield _violation(Fault.DOUBLED, f"{kind} {key} was told more than once in {chat}")
    if not _grows(each.place for each in told):
        yield _violation(Fault.DISORDER, f"{chat} was told events out of their order")
    answers = [each for each in words if each.kind == "answer"]
    if not _grows((_number(each.turn), each.part) for each in answers):
        yield _violation(Fault.DISORDER, f"the answers in {chat} are out of order")
    if list(told) != list(view.seen.from_start[chat]):
        yield _violation(Fault.WRONG, f"a new follower of {chat} is told something else")
    rows = [row for row in view.seen.remains.deliveries if row.chat == chat]
    delivered = {f"d{row.delivery_id}": row.text for row in rows if row.state == "delivered"}
    heard = {each.delivery: each.text for each in words}
    for missing in sorted(delivered.items() - heard.items()):
        yield _violation(Fault.LOST, f"{missing[0]} is delivered, and {chat} was not told")
    for strange in sorted(heard.items() - delivered.items()):
        yield _violation(Fault.WRONG, f"{chat} was told {strange[0]}, which is not stored so")
    yield from _check_marks(view, chat, answers)


def _check_marks(view: _View, chat: str, answers: Sequence[SeenEvent]) -> Iterator[Violation]:
    """Words that only one errand can bring about are in one answer; turns keep the order of what
    they were asked."""
    asked = [sent for sent in view.seen.sent if sent.chat == chat and _has_turn(sent)]
    causes: dict[str, set[str]] = defaultdict(set)
    for each in answers:
        for mark in set(MARK.findall(each.text)):
            causes[mark].add(each.cause)
    for sent in asked:
        found = causes[sent.errand.mark]
        if len(found) > 1:
            yield _violation(Fault.DOUBLED, f"{sent.errand.mark} was answered by {sorted(found)}")
    # A turn is counted once for all that it answers together.
    first = [sent for sent in asked if view.answered_with(sent)[0] is sent]
    turns = [view.turn_of(sent) for sent in first]
    if not _grows(turn.turn_id for turn in turns if turn is not None):
        yield _violation(Fault.DISORDER, f"{chat} was not worked on in the order it was asked")


def _has_turn(sent: SeenSent) -> bool:
    return sent.message is not None and sent.errand.kind not in (ErrandKind.ORDER, ErrandKind.REPLY)


def _check_rest(remains: Remains) -> Iterator[Violation]:
    """I5: everything came to its end."""
    for entry in remains.entries:
        if entry.state == "waiting":
            yield _violation(Fault.LOST, f"m{entry.entry_id} still waits")
    for turn in remains.turns:
        if turn.state not in CLOSED:
            yield _violation(Fault.LOST, f"t{turn.turn_id} is {turn.state} and stays so")
    for row in remains.deliveries:
        if row.state not in SETTLED:
            yield _violation(Fault.LOST, f"d{row.delivery_id} is {row.state} and stays so")


def _check_ledger(view: _View) -> Iterator[Violation]:
    """I7: a command runs at most once, and has run where that was said."""
    ledger = view.seen.ledger
    errands = [sent.errand for sent in view.seen.sent]
    errands += [visit.errand for visit in view.seen.visits]
    known = {errand.mark for errand in errands if errand.leaves_line}
    for mark, times in ledger.items():
        if times > 1:
            yield _violation(Fault.RAN_TWICE, f"the command of {mark} ran {times} times")
        if mark not in known:
            yield _violation(Fault.RAN_TWICE, f"a command without an errand ran: {mark!r}")
    for sent in view.seen.sent:
        turn = view.turn_of(sent) if sent.errand.leaves_line else None
        if turn is None or turn.state != "done" or _is_excused(view, sent):
            continue
        if not ledger.get(sent.errand.mark):
            yield _violation(Fault.NOT_RUN, f"{sent.errand.mark} was answered and never ran")


def _check_boundary(remains: Remains) -> Iterator[Violation]:
    """No kill makes a command run outside: what holds for one command of a home holds for all."""
    if len({row.boundary for row in remains.processes}) > 1:
        for row in remains.processes:
            if row.boundary == "none":
                yield _violation(Fault.OUTSIDE, f"p{row.process_id} had no boundary around it")


def _check_jobs(view: _View) -> Iterator[Violation]:
    """I10: the end of each background command is told once, with the right code."""
    jobs = {sent.errand.mark: sent for sent in view.seen.sent if sent.errand.kind is ErrandKind.JOB}
    begun: Counter[str] = Counter()
    for row in view.seen.remains.processes:
        sent = jobs.get(_mark_in(row.command))
        if row.foreground or sent is None:
            continue
        begun[sent.errand.mark] += 1
        yield from _check_job(view, sent, row)
    for mark, times in begun.items():
        if times > 1:
            yield _violation(Fault.RAN_TWICE, f"{times} background commands were begun for {mark}")


def _check_job(view: _View, sent: SeenSent, row: ProcessRow) -> Iterator[Violation]:
    name, code = f"p{row.process_id} ({sent.errand.mark})", sent.errand.code
    turn = view.turn_of(sent)
    has_run, was_killed = view.seen.ledger.get(sent.errand.mark), view.seen.runners_killed
    # It was killed with its runner, or its turn was given up before it began.
    is_unborn = not has_run and turn is not None and turn.state == "failed"
    is_lost = row.state == "lost" and (row.process_id in was_killed or is_unborn)
    if (row.state, row.exit_code) != ("exited", code) and not is_lost:
        said = f"{row.state} with {row.exit_code} instead of exited with {code}"
        yield _violation(Fault.JOB, f"{name} is {said}")
    reports = view.entries[f"{row.process_id}:end"]
    noted = sum(view.seen.remains.heard.get(f"entry:{each.entry_id}", 0) for each in reports)
    if len(reports) != 1 or noted > 1:
        yield _violation(Fault.JOB, f"{name} has {len(reports)} reports, heard {noted} times")
        return
    (report,) = reports
    # The agent was shown the end where it began it.
    answer = view.answer(turn) if turn is not None and turn.state == "done" else ""
    shown = answer != "" and re.match("It runs in the background", answer) is None
    is_read = re.match(exited(code), answer) is not None
    is_told = is_read or (is_lost and shown and not noted) or _tells(view, report, row)
    cause = f"report:{report.entry_id}"
    times = int(is_told) + sum(told.cause == cause for told in view.seen.told[row.chat])
    if times != 1:
        yield _violation(Fault.JOB, f"the end of {name} was told {times} times")
    elif is_lost:
        return
    elif report.turn_id and report.turn_id not in view.turns_with_messages:
        yield from _check_report(view, report, f"exited with code {code}", name)


def _tells(view: _View, report: SeenEntry, row: ProcessRow) -> bool:
    """Whether the turn that has the report was answered, and the answer names the process, or the
    turn was there for nothing else."""
    turn = view.turns.get(report.turn_id or 0)
    if turn is None or turn.state != "done":
        return False
    others = [each for each in view.seen.remains.entries if each.turn_id == turn.turn_id]
    word = rf"\bp{row.process_id}\b"
    return len(others) == 1 or re.search(word, view.answer(turn), re.ASCII) is not None


def _check_report(view: _View, report: SeenEntry, words: str, name: str) -> Iterator[Violation]:
    """A turn that only a report has opened says what the report says."""
    turn = view.turns.get(report.turn_id or 0)
    if turn is not None and turn.state == "done" and words not in view.answer(turn):
        yield _violation(Fault.JOB, f"{name}: t{turn.turn_id} does not say that it {words}")


def _mark_in(command: str) -> str:
    """The mark of a command that an errand has begun."""
    return command.removeprefix("echo ").partition(" ")[0]


def _number(shown: str) -> int:
    return int(shown[1:] or 0)


def _repeated(keys: Iterable[str]) -> list[str]:
    return [key for key, times in Counter(keys).items() if times > 1]


def _grows(numbers: Iterable[int] | Iterable[tuple[int, int]]) -> bool:
    return all(before < after for before, after in pairwise(numbers))  # type: ignore[operator]
