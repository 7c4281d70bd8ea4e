"""What the command line can ask, answered from the store's views.

An answer is what JSON can hold. `ok` says whether it could be given; if not, `error` has a `type`
for programs and a `message` for people.
"""

from collections.abc import Mapping

from koboshi.control import backups
from koboshi.control import pairing as people
from koboshi.control.act import ActRequests
from koboshi.control.context import LOG_CHARS_MAX, ControlContext
from koboshi.control.read import ReadRequests, named_in
from koboshi.control.rows import refusal
from koboshi.domain.ids import WorkerId
from koboshi.domain.shutdown import Leave
from koboshi.processes.installed import INSTALLED

NO_LINES = 1 << 62
"""Behind every line of the journal that there can be."""


async def answer(jobs: ControlContext, request: Mapping[str, object]) -> Mapping[str, object]:
    """The answer to one request, by a gateway or by a command that owns the home for a moment."""
    request = {name: _readable(value) for name, value in request.items()}
    store, what = jobs.store, named_in(request)
    looks = ReadRequests(
        views=store.views,
        is_running=jobs.is_running,
        trouble=store.trouble,
        channels=jobs.channels(),
        neighbours=jobs.neighbours(),
        restart=INSTALLED.look() if jobs.is_running else None,
    )
    found = await looks.answer(request)
    if found is not None:
        return found
    match request.get("ask"):
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
            return await people.revoke(store, what, str(request.get("person", "")))
        case "held":
            tally = await store.views.tally(WorkerId(0), NO_LINES)
            return {"ok": True, "held": tally.held, "ambiguous": tally.ambiguous}
        case "backup-create":
            return backups.begun(store, what, request.get("keep"))
        case "backup-standing":
            return backups.standing(store)
        case asked:
            kind = str(request.get("kind", ""))
            operate = ActRequests(
                store=store, views=store.views, kind=kind, what=what, request=request
            )
            return await operate.answer(asked) or refusal(
                "unknown-request", f"nobody here knows how to answer {asked!r}"
            )


def _readable(value: object) -> object:
    """Half a character is legal in JSON; no row holds one, and no answer can repeat it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value if isinstance(value, bool | int | float | None) else str(_readable(repr(value)))


def _chars(request: Mapping[str, object]) -> int:
    wanted = request.get("chars")
    return max(1, min(wanted, LOG_CHARS_MAX)) if isinstance(wanted, int) else LOG_CHARS_MAX


def _login(jobs: ControlContext) -> Mapping[str, object]:
    link = jobs.login_link()
    if link is None:
        return refusal("not-running", "no gateway serves pages in this home; `koboshi run` does")
    return {"ok": True, "link": link}


async def _leave(jobs: ControlContext, how: Leave) -> Mapping[str, object]:
    """Ask the gateway to end. Where none runs there is nothing to do, and that is said."""
    status = await jobs.store.views.status()
    if jobs.leave is None or status.worker is None:
        return refusal("not-running", "no gateway is running in this home")
    reason = await jobs.why_not_restart() if how is Leave.RESTART else ""
    if reason:
        words = "not restarted, the gateway goes on as it is; a new one would refuse to start: "
        return refusal("config", words + reason)
    jobs.leave(how)
    return {"ok": True, "pid": status.worker.pid, "running_turns": status.turns.get("running", 0)}


def _no_process(what: str) -> Mapping[str, object]:
    words = f'there is no process "{what}"; `koboshi processes list` shows them, as p1'
    return refusal("not-found", words)


def _no_code() -> Mapping[str, object]:
    words = "no code reads so: it may be mistyped, used, denied or over; after too many wrong ones "
    return refusal("not-found", words + "those that were good are not any more")
