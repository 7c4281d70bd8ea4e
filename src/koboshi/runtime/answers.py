"""What the command line can ask, answered from the store's views.

An answer is what JSON can hold. `ok` says whether it could be given; if not, `error` has a `type`
for programs and a `message` for people.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace

from koboshi.domain.ids import (
    DeliveryId,
    EntryId,
    ProcessId,
    SessionId,
    TurnId,
    WorkerId,
    parse_shown,
)
from koboshi.domain.outbox import UNSETTLED
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.turn import CLOSED, OPEN, TurnEvent, TurnState
from koboshi.ports.store import Store
from koboshi.ports.views import DeliveryView, EntryView, Explanation
from koboshi.runtime import backups, people
from koboshi.runtime.browse import Browse, refusal
from koboshi.runtime.drain import Leave
from koboshi.runtime.jobs import LOG_CHARS_MAX, Jobs

NO_LINES = 1 << 62
"""Behind every line of the journal that there can be."""
ALIVE = tuple(state for state in TurnState if state not in CLOSED)


async def answer(jobs: Jobs, request: Mapping[str, object]) -> Mapping[str, object]:
    """The answer to one request, by a gateway or by a command that owns the home for a moment."""
    store, is_running = jobs.store, jobs.is_running
    what = str(request.get("what", "")).encode("utf-8", "replace").decode()
    match request.get("ask"):
        case "status":
            return await _status(store, is_running=is_running)
        case "explain":
            return await _Explainer(store, what, is_running).explain()
        case "processes":
            return await jobs.listed()
        case "process-log":
            return await jobs.log(what, _chars(request)) or _no_process(what)
        case "login":
            return _login(jobs)
        case "address":
            return {"ok": True, "address": jobs.web_address()}
        case "stop" | "restart" | "drain" as how:
            return await _leave(jobs, Leave(how))
        case "process-kill":
            return await jobs.end(what) or _no_process(what)
        case "pairing-list":
            return await people.listed(store)
        case "pairing-approve":
            return await people.approve(store, what) or _no_code()
        case "pairing-deny":
            return await people.deny(store, what) or _no_code()
        case "pairing-revoke":
            person = str(request.get("person", "")).encode("utf-8", "replace").decode()
            return await people.revoke(store, what, person)
        case "held":
            tally = await store.views.tally(WorkerId(0), NO_LINES)
            return {"ok": True, "held": tally.held, "ambiguous": tally.ambiguous}
        case "backup-create":
            return backups.begun(store, what, request.get("keep"))
        case "backup-standing":
            return backups.standing(store)
        case asked:
            kind = str(request.get("kind", ""))
            browse = Browse(store=store, kind=kind, what=what, request=request)
            return await browse.answer(asked) or refusal(
                "unknown-request", f"nobody here knows how to answer {asked!r}"
            )


def _chars(request: Mapping[str, object]) -> int:
    wanted = request.get("chars")
    return max(1, min(wanted, LOG_CHARS_MAX)) if isinstance(wanted, int) else LOG_CHARS_MAX


def _login(jobs: Jobs) -> Mapping[str, object]:
    link = jobs.login_link()
    if link is None:
        return refusal("not-running", "no gateway serves pages in this home; `koboshi run` does")
    return {"ok": True, "link": link}


async def _leave(jobs: Jobs, how: Leave) -> Mapping[str, object]:
    """Ask the gateway to end. Where none runs there is nothing to do, and that is said."""
    status = await jobs.store.views.status()
    if jobs.leave is None or status.worker is None:
        return refusal("not-running", "no gateway is running in this home")
    jobs.leave(how)
    return {"ok": True, "pid": status.worker.pid, "running_turns": status.turns.get("running", 0)}


def _no_process(what: str) -> Mapping[str, object]:
    words = f'there is no process "{what}"; `koboshi processes list` shows them, as p1'
    return refusal("not-found", words)


def _no_code() -> Mapping[str, object]:
    words = "no code reads so: it may be mistyped, used, denied or over; after too many wrong ones "
    return refusal("not-found", words + "those that were good are not any more")


async def _status(store: Store, *, is_running: bool) -> Mapping[str, object]:
    status = asdict(await store.views.status())
    turns = {str(state): status["turns"].get(state, 0) for state in ALIVE}
    begin = {"ok": True, "is_running": is_running, "trouble": store.trouble}
    return {**begin, **status, "turns": turns}


class _Explainer:
    """One question "why is this where it is?"."""

    def __init__(self, store: Store, what: str, is_running: bool) -> None:
        self._views = store.views
        self._what = what
        self._is_running = is_running

    async def explain(self) -> Mapping[str, object]:
        """What is named may be an id of ours, or a platform's id of a message."""
        named = parse_shown(self._what)
        found = None if named is None else await self._by_shown(*named)
        if found is None:
            entry = await self._views.entry_by_external_id(self._what)
            found = None if entry is None else await self._entry(entry)
        return found or refusal(
            "not-found",
            f'there is nothing named "{self._what}"; turns are t1, sessions s1, messages m1, '
            "deliveries d1, processes p1, and a platform's own message id works, too",
        )

    async def _by_shown(self, kind: str, number: int) -> Mapping[str, object] | None:
        match kind:
            case "turn":
                return await self._turn(TurnId(number))
            case "session":
                turns = await self._views.turns_of(SessionId(number), 1)
                return await self._turn(turns[0].turn_id) if turns else None
            case "message":
                entry = await self._views.entry(EntryId(number))
                return None if entry is None else await self._entry(entry)
            case "delivery":
                delivery = await self._views.delivery(DeliveryId(number))
                return None if delivery is None else await self._delivery(delivery)
            case "process":
                return await self._process(ProcessId(number))
            case _:
                return None

    async def _turn(self, turn_id: TurnId) -> Mapping[str, object] | None:
        explanation = await self._views.explain(turn_id)
        if explanation is None:
            return None
        is_worked_on = await self._is_worked_on(explanation)
        why = why_now(explanation, is_running=self._is_running, is_worked_on=is_worked_on)
        story = asdict(replace(explanation, why=why))
        return self._told("turn", is_worked_on=is_worked_on, **story)

    async def _is_worked_on(self, explanation: Explanation) -> bool:
        """Whether the gateway that runs now holds the claim: then nothing was interrupted."""
        if not self._is_running or explanation.turn.worker_id is None:
            return False
        worker = (await self._views.status()).worker
        return worker is not None and worker.worker_id == explanation.turn.worker_id

    async def _entry(self, entry: EntryView) -> Mapping[str, object] | None:
        if entry.turn_id is not None:
            return await self._turn(entry.turn_id)
        newest = () if entry.session_id is None else await self._views.turns_of(entry.session_id, 1)
        open_turns = [turn for turn in newest if turn.state in OPEN]
        behind = asdict(open_turns[0]) if open_turns and entry.state == "waiting" else None
        return self._told("message", message=asdict(entry), behind=behind)

    async def _delivery(self, delivery: DeliveryView) -> Mapping[str, object]:
        turn_id, behind = delivery.turn_id, None
        of = None if turn_id is None else await self._views.explain(turn_id)
        if of is not None and delivery.state in UNSETTLED:
            unsettled = [each for each in of.deliveries if each.state in UNSETTLED]
            earlier = [each for each in unsettled if each.delivery_id < delivery.delivery_id]
            behind = asdict(earlier[0]) if earlier else None
        number = delivery.delivery_id
        lines = () if of is None else of.lines
        return self._told(
            "delivery",
            delivery=asdict(delivery),
            turn=None if of is None else asdict(of.turn),
            behind=behind,
            lines=[
                asdict(line)
                for line in lines
                if line.subject == "delivery" and line.number == number
            ],
        )

    async def _process(self, process_id: ProcessId) -> Mapping[str, object] | None:
        view = await self._views.process(process_id)
        if view is None:
            return None
        reports = [asdict(entry) for entry in await self._views.reports_of(process_id)]
        return self._told("process", **asdict(view), reports=reports)

    def _told(self, kind: str, **facts: object) -> Mapping[str, object]:
        return {"ok": True, "kind": kind, "is_running": self._is_running, **facts}


def why_now(explanation: Explanation, *, is_running: bool, is_worked_on: bool) -> Verdict | None:
    """Why a turn that is not closed stands where it does.

    The verdict is what recovery would decide now. It speaks of an interruption, which is the truth
    only for a turn that had one.
    """
    turn, verdict = explanation.turn, explanation.why
    if verdict is None:
        return None
    if is_worked_on:
        because = "this gateway is working on it"
        return Verdict(kind=VerdictKind.STAND, rule="worked-on", because=because)
    if turn.state != TurnState.QUEUED or verdict.kind is not VerdictKind.RESUME:
        return verdict
    when = "as soon as there is room" if is_running else "when a gateway runs again"
    match turn.event:
        case "opened":
            return replace(verdict, because=f"nobody has worked on it yet; it begins {when}")
        case TurnEvent.REPLIED:
            return replace(verdict, because=f"the person has answered; it goes on {when}")
        case TurnEvent.RELEASED:
            because = f"it was set down because the gateway was stopping; it goes on {when}"
            return replace(verdict, because=because)
        case TurnEvent.POSTPONED:
            because = "the model could not answer yet; it is asked again when the wait is over"
            return replace(verdict, because=because)
        case _:
            return verdict
