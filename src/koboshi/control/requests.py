"""What an operator or the page can ask and do, one type for each request, tagged by `ask`.

The command line makes these and sends them over the control socket, the page makes them of the
addresses it serves, and `control/handle.py` answers them. `control/request_wire.py` is their
form on the socket.
"""

from typing import ClassVar

import msgspec


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="ask"):
    """`what` names what it is about, as people are shown it: t1, s1, m1, d1, p1."""


class Look(ControlRequest, frozen=True, kw_only=True):
    """What is answered from the views alone: without a gateway, and without what one needs."""


# ── what can be seen ────────────────────────────────────────────────────────────────────────────


class GetStatus(Look, frozen=True, kw_only=True, tag="status"):
    pass


class GetTroubles(Look, frozen=True, kw_only=True, tag="troubles"):
    """What keeps messages from being answered now."""


class Explain(Look, frozen=True, kw_only=True, tag="explain"):
    """Why something is where it is. `what` may also be a platform's own id of a message."""

    what: str = ""


class ListRows(Look, frozen=True, kw_only=True, tag="list"):
    """Rows, newest first. `kind` is turn, session, message, delivery, worker or line."""

    kind: str = ""
    limit: int | None = None
    before: str = ""
    open: bool = False
    session: str = ""
    """Of turns: only those of this session."""
    chat: str = ""
    """Of sessions: only those whose chat begins with these letters."""


class ShowRow(Look, frozen=True, kw_only=True, tag="show"):
    kind: str = ""
    what: str = ""


class TraceMessage(Look, frozen=True, kw_only=True, tag="trace"):
    what: str = ""


class GetInbox(Look, frozen=True, kw_only=True, tag="inbox"):
    """The messages of a list, each with its turn and what became of it."""

    limit: int | None = None
    before: str = ""
    open: bool = False


class TellTurn(Look, frozen=True, kw_only=True, tag="tell"):
    """As `explain`, and of a turn also what was said and done in it."""

    kind: str = ""
    """What has to be named; empty for anything."""
    what: str = ""


class ListQuestions(Look, frozen=True, kw_only=True, tag="questions"):
    pass


class ListChats(Look, frozen=True, kw_only=True, tag="chats"):
    """The chats of a channel in which something happened lately."""

    channel: str = ""


class ListActivity(Look, frozen=True, kw_only=True, tag="activity"):
    """Turns, messages, deliveries and processes together, newest first."""

    kind: str = ""
    """Some of turn, message, delivery, process, with commas; empty for all."""
    state: str = ""
    """open, done, failed, or a state."""
    channel: str = ""
    text: str = ""
    since: int | None = None
    until: int | None = None
    limit: int | None = None
    before: str = ""


class GetMinutes(Look, frozen=True, kw_only=True, tag="minutes"):
    """Counts and measurements of the last day, by minute."""


class ListAgents(Look, frozen=True, kw_only=True, tag="agents"):
    """The foreign agents that live."""


class CountHeld(Look, frozen=True, kw_only=True, tag="held"):
    pass


class ListProcesses(Look, frozen=True, kw_only=True, tag="processes"):
    pass


class ReadProcessLog(ControlRequest, frozen=True, kw_only=True, tag="process-log"):
    what: str = ""
    chars: int | None = None
    """How much of its end."""


class GetLogin(ControlRequest, frozen=True, kw_only=True, tag="login"):
    """An address that lets one browser in, once."""


class GetAddress(ControlRequest, frozen=True, kw_only=True, tag="address"):
    """Where the web channel listens."""


# ── what can be done ────────────────────────────────────────────────────────────────────────────


class EndGateway(ControlRequest, frozen=True, kw_only=True):
    pass


class StopGateway(EndGateway, frozen=True, kw_only=True, tag="stop"):
    pass


class RestartGateway(EndGateway, frozen=True, kw_only=True, tag="restart"):
    pass


class DrainGateway(EndGateway, frozen=True, kw_only=True, tag="drain"):
    pass


class EndProcess(ControlRequest, frozen=True, kw_only=True, tag="process-kill"):
    what: str = ""


class ChangeRow(ControlRequest, frozen=True, kw_only=True):
    """Something is done to one row."""

    kind: ClassVar[str]
    what: str = ""


class ResumeTurn(ChangeRow, frozen=True, kw_only=True, tag="turn-resume"):
    kind: ClassVar[str] = "turn"


class DropTurn(ChangeRow, frozen=True, kw_only=True, tag="turn-drop"):
    kind: ClassVar[str] = "turn"


class RetryMessage(ChangeRow, frozen=True, kw_only=True, tag="inbox-retry"):
    kind: ClassVar[str] = "message"
    anew: bool = False
    """Also one that was answered."""


class DropMessage(ChangeRow, frozen=True, kw_only=True, tag="inbox-drop"):
    kind: ClassVar[str] = "message"


class RetryDelivery(ChangeRow, frozen=True, kw_only=True, tag="outbox-retry"):
    kind: ClassVar[str] = "delivery"


class ReleaseDelivery(ChangeRow, frozen=True, kw_only=True, tag="outbox-release"):
    """Release one that is held; all if none is named."""

    kind: ClassVar[str] = "delivery"


class DropDelivery(ChangeRow, frozen=True, kw_only=True, tag="outbox-drop"):
    kind: ClassVar[str] = "delivery"


class ListPairings(ControlRequest, frozen=True, kw_only=True, tag="pairing-list"):
    pass


class ApprovePairing(ControlRequest, frozen=True, kw_only=True, tag="pairing-approve"):
    """`what` is the code. Without a role the person becomes a member."""

    what: str = ""
    role: str = ""


class SetRole(ControlRequest, frozen=True, kw_only=True, tag="people-role"):
    """Give a person another role: `what` is their channel."""

    what: str = ""
    person: str = ""
    role: str = ""


class ErasePerson(ControlRequest, frozen=True, kw_only=True, tag="people-erase"):
    """Erase what a person said: `what` is their channel."""

    what: str = ""
    person: str = ""


class DenyPairing(ControlRequest, frozen=True, kw_only=True, tag="pairing-deny"):
    what: str = ""


class RevokePairing(ControlRequest, frozen=True, kw_only=True, tag="pairing-revoke"):
    """`what` is the channel."""

    what: str = ""
    person: str = ""


class SayInChat(ControlRequest, frozen=True, kw_only=True, tag="say"):
    """A person at the terminal says something in a chat of the web channel. `what` is the chat,
    `message` the idempotency key."""

    what: str = ""
    thread: str = ""
    message: str = ""
    text: str = ""
    question: int | None = None
    choice: str | None = None


class SearchChats(ControlRequest, frozen=True, kw_only=True, tag="search"):
    """The newest messages and answers of a channel with these words."""

    channel: str = ""
    text: str = ""
    limit: int | None = None


class ChangeChat(ControlRequest, frozen=True, kw_only=True):
    """Something is done to a chat of a channel. `what` is the chat."""

    channel: str = ""
    what: str = ""


class NameChat(ChangeChat, frozen=True, kw_only=True, tag="chat-name"):
    """An empty text takes the name back."""

    text: str = ""


class MarkChat(ChangeChat, frozen=True, kw_only=True, tag="chat-mark"):
    """`kind` is pin, unpin, archive or unarchive."""

    kind: str = ""


class DeleteChat(ChangeChat, frozen=True, kw_only=True, tag="chat-delete"):
    """Erase all that was said there, and remove it from the list."""


class ListBrowsers(ControlRequest, frozen=True, kw_only=True, tag="browsers"):
    pass


class RevokeBrowser(ControlRequest, frozen=True, kw_only=True, tag="browser-revoke"):
    """`what` is a browser, b1, or all of them: all."""

    what: str = ""


class ListRules(ControlRequest, frozen=True, kw_only=True, tag="rules-list"):
    """What people allowed for good in their chats."""


class RevokeRule(ControlRequest, frozen=True, kw_only=True, tag="rule-revoke"):
    """`what` is the rule, r1."""

    what: str = ""


class AnswerApproval(ControlRequest, frozen=True, kw_only=True):
    """An answer to an approval that a person gives on the page. `what` is the number of the
    question. It is not taken over the socket: a program that the agent runs could send it."""

    what: str = ""


class ApproveQuestion(AnswerApproval, frozen=True, kw_only=True, tag="question-approve"):
    pass


class ApproveForGood(AnswerApproval, frozen=True, kw_only=True, tag="question-always"):
    pass


class DenyQuestion(AnswerApproval, frozen=True, kw_only=True, tag="question-deny"):
    pass


class ListSchedules(ControlRequest, frozen=True, kw_only=True, tag="schedules-list"):
    pass


class ShowSchedule(ControlRequest, frozen=True, kw_only=True, tag="schedule-show"):
    what: str = ""


class AddSchedule(ControlRequest, frozen=True, kw_only=True, tag="schedule-add"):
    """`what` is the session, s1; `text` is what a person writes behind `/cron add`."""

    what: str = ""
    text: str = ""


class MoveTimed(ControlRequest, frozen=True, kw_only=True):
    """Something is done to a schedule, c1, or to a goal, g1."""

    what: str = ""


class PauseSchedule(MoveTimed, frozen=True, kw_only=True, tag="schedule-pause"):
    pass


class ResumeSchedule(MoveTimed, frozen=True, kw_only=True, tag="schedule-resume"):
    pass


class RunScheduleNow(MoveTimed, frozen=True, kw_only=True, tag="schedule-run"):
    pass


class RemoveSchedule(MoveTimed, frozen=True, kw_only=True, tag="schedule-remove"):
    pass


class ListGoals(ControlRequest, frozen=True, kw_only=True, tag="goals-list"):
    pass


class PauseGoal(MoveTimed, frozen=True, kw_only=True, tag="goal-pause"):
    pass


class ResumeGoal(MoveTimed, frozen=True, kw_only=True, tag="goal-resume"):
    pass


class FinishGoal(MoveTimed, frozen=True, kw_only=True, tag="goal-done"):
    pass


class ClearGoal(MoveTimed, frozen=True, kw_only=True, tag="goal-clear"):
    pass


class GetUsage(ControlRequest, frozen=True, kw_only=True, tag="usage"):
    """What the models were used for since a moment, in milliseconds since 1970."""

    since_ms: int = 0


class ListMemory(ControlRequest, frozen=True, kw_only=True, tag="memory-list"):
    pass


class RemoveMemoryEntry(ControlRequest, frozen=True, kw_only=True, tag="memory-remove"):
    """`what` is the entry, n1."""

    what: str = ""


class CreateBackup(ControlRequest, frozen=True, kw_only=True, tag="backup-create"):
    """`what` is the file; empty means one in the home."""

    what: str = ""
    keep: int | None = None


class GetBackup(ControlRequest, frozen=True, kw_only=True, tag="backup-standing"):
    """How far the newest backup is."""
