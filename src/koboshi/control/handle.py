"""What the command line and the page can ask, answered by the owner of the home.

A reply is a type of `control/replies.py`. `ok` says whether it could be given; if not, `error` has
a `type` for programs and a `message` for people.
"""

from collections.abc import Mapping
from functools import partial

from koboshi.control import approval_acts, backups, browsers, chats, memory, schedules, usage
from koboshi.control import pairing as people
from koboshi.control.act import RowChange
from koboshi.control.agents import living_agents
from koboshi.control.context import LOG_CHARS_MAX, ControlContext
from koboshi.control.read import ReadRequests
from koboshi.control.replies import (
    Done,
    GatewayEnding,
    LoginLink,
    Refusal,
    WebAddress,
    encoded,
    refusal,
)
from koboshi.control.request_wire import readable, request_of
from koboshi.control.requests import (
    AddSchedule,
    AnswerApproval,
    ApprovePairing,
    ChangeChat,
    ChangeRow,
    ControlRequest,
    CreateBackup,
    DenyPairing,
    EndGateway,
    EndProcess,
    ErasePerson,
    GetAddress,
    GetBackup,
    GetLogin,
    GetUsage,
    ListBrowsers,
    ListGoals,
    ListMemory,
    ListPairings,
    ListRules,
    ListSchedules,
    Look,
    MoveTimed,
    ReadProcessLog,
    RemoveMemoryEntry,
    RevokeBrowser,
    RevokePairing,
    RevokeRule,
    SayInChat,
    SearchChats,
    SetRole,
    ShowSchedule,
)
from koboshi.domain.shutdown import Leave
from koboshi.processes.installed import INSTALLED


async def answer(jobs: ControlContext, asked: Mapping[str, object]) -> Mapping[str, object]:
    """The answer to one request as it comes over the socket."""
    request = request_of(asked)
    if request is None:
        words = f"this gateway has no request called {readable(asked.get('ask'))!r}"
        return encoded(refusal("unknown-request", words))
    if isinstance(request, AnswerApproval):
        words = "a person answers an approval in their chat or on the page, and no program does"
        return encoded(refusal("approval-needs-person", words))
    return encoded(await reply_to(jobs, request))


async def reply_to(jobs: ControlContext, request: ControlRequest) -> Done:
    """The answer of a gateway, or of a command that owns the home for a moment."""
    store = jobs.store
    match request:
        case Look():
            return await _seen(jobs).answer(request)
        case ChangeRow():
            return await RowChange(store=store, request=request).answer()
        case SearchChats() | ChangeChat():
            return await chats.answer(jobs, request)
        case EndGateway():
            return await _leave(jobs, request)
        case ReadProcessLog(what=what, chars=chars):
            return await jobs.log(what, _chars(chars)) or _no_process(what)
        case EndProcess(what=what):
            return await jobs.end(what) or _no_process(what)
        case GetLogin():
            return await _login(jobs)
        case GetAddress():
            return WebAddress(address=jobs.web_address())
        case ListPairings():
            return await people.listed(store)
        case ApprovePairing(what=code, role=role):
            return await people.approve(store, code, role) or _no_code()
        case ErasePerson(what=channel, person=person):
            return await people.erase(jobs, channel, person)
        case SetRole(what=channel, person=person, role=role):
            return await people.set_role(store, channel, person, role)
        case DenyPairing(what=code):
            return await people.deny(store, code) or _no_code()
        case RevokePairing(what=channel, person=person):
            return await people.revoke(store, channel, person)
        case SayInChat():
            return await jobs.say(request)
        case ListBrowsers() | RevokeBrowser():
            return await browsers.answer(store, request)
        case ListRules() | RevokeRule():
            return await approval_acts.rules(store, request)
        case AnswerApproval():
            return await approval_acts.answer(store, request)
        case MoveTimed() | ListSchedules() | ShowSchedule() | AddSchedule() | ListGoals():
            return await schedules.answer(store, request)
        case GetUsage(since_ms=since_ms):
            return await usage.answer(store, since_ms)
        case ListMemory() | RemoveMemoryEntry():
            return await memory.answer(store, request)
        case CreateBackup() | GetBackup():
            return backups.answer(store, request)
        case other:
            raise AssertionError(f"nothing answers {type(other).__name__}")


def _seen(jobs: ControlContext) -> ReadRequests:
    return ReadRequests(
        views=jobs.store.views,
        is_running=jobs.is_running,
        trouble=jobs.store.trouble,
        channels=jobs.channels(),
        heard=jobs.heard(),
        neighbours=jobs.neighbours(),
        restart=INSTALLED.look() if jobs.is_running else None,
        agents=partial(living_agents, jobs.store.agents, jobs.runners),
    )


def _chars(wanted: int | None) -> int:
    return LOG_CHARS_MAX if wanted is None else max(1, min(wanted, LOG_CHARS_MAX))


async def _login(jobs: ControlContext) -> LoginLink | Refusal:
    link = await jobs.login_link()
    if link is None:
        return refusal("not-running", "no gateway serves pages in this home; `koboshi run` does")
    return LoginLink(link=link)


async def _leave(jobs: ControlContext, request: EndGateway) -> GatewayEnding | Refusal:
    """Ask the gateway to end. Where none runs there is nothing to do, and that is said."""
    how = Leave(str(request.__struct_config__.tag))
    status = await jobs.store.views.status()
    if jobs.leave is None or status.worker is None:
        return refusal("not-running", "no gateway is running in this home")
    reason = await jobs.why_not_restart() if how is Leave.RESTART else ""
    if reason:
        words = "not restarted, the gateway goes on as it is; a new one would refuse to start: "
        return refusal("config", words + reason)
    jobs.leave(how)
    return GatewayEnding(pid=status.worker.pid, running_turns=status.turns.get("running", 0))


def _no_process(what: str) -> Refusal:
    words = f'there is no process "{what}"; `koboshi processes list` shows them, as p1'
    return refusal("not-found", words)


def _no_code() -> Refusal:
    words = "unknown code: it may be mistyped, used, denied or expired; too many wrong "
    return refusal("not-found", words + "codes cancel all others")
