"""Command and facts → what to say, cut and allow. Pure: every sentence rests on the facts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from koboshi.commands.jobs import jobs
from koboshi.commands.memory import memory
from koboshi.commands.models import budget, model, usage
from koboshi.commands.operator_action import NOT_ALLOWED, drop, resume, retry
from koboshi.commands.rules import rules
from koboshi.commands.settings import agent, busy, forget, listen, resume_policy, whoami
from koboshi.commands.time import cron, goal, remind
from koboshi.domain import time_words
from koboshi.domain.approval import NotAnAnswer
from koboshi.domain.command import (
    Command,
    CommandName,
    QuestionEnd,
    QuestionKind,
    Response,
    Ruling,
    SessionFacts,
    TurnGlance,
)
from koboshi.domain.durations import ago
from koboshi.domain.goal import GoalState
from koboshi.domain.ids import shown
from koboshi.domain.phrases import ALWAYS, NO_RULING, NO_YES_HERE, excerpt, failure
from koboshi.domain.reasons import Reason, why_asked, why_closed
from koboshi.domain.session import CutKind
from koboshi.domain.standing import HELD_BACK, where_it_stands, why_now
from koboshi.domain.turn import CLOSED, TurnState

REPLY_CHARS_MAX = 3_500
PROCESSES_SHOWN_MAX = 5
TROUBLE_CHARS_MAX = 1_000
STORY_LINE_CHARS_MAX = 300

HELP = """\
/new – start a new conversation; the old one is kept, but I no longer look at it
/stop – stop what I am doing and drop what waits; /stop all also ends background processes
/status – what I am doing now
/jobs – background processes; /jobs log p1 shows the output of one, /jobs kill p1 ends it
/queue – send a message for after this turn; /steer – send a message to the running turn
/busy – what messages do while I work: queue, steer or interrupt
/resume, /drop – continue what was interrupted, or drop it
/retry – ask again what failed
/resume-policy – whether I continue by myself after an interruption: auto, ask or off
/why – what happened to your last request, and why
/approve, /deny – answer when I ask whether I may do something; /deny can say what you want instead
/rules – what you always allow in this chat; /rules revoke r1 takes one back
/restart – start the gateway again; nothing is lost
/listen – what I hear in a group: all, or what is said to me (mention)
/remind – remind you later: /remind in 2 hours tea, /remind Friday 9:00 the report
/cron – what I do at set times; /cron add every weekday at 7:00 send me the news
/goal – work on something until it is done; /goal alone shows how far it is
/memory – what I remember of you or of this group; /memory undo takes the last change back
/agent – which agent answers in this chat; /agent NAME chooses another
/model – which model answers in this chat; /usage – what it used
/budget – how much of today's budget is used; /budget more allows more today
/whoami – who you are to me
/forget me – erase everything you said to me; I ask first
/help – this list
Anything else you write is for the agent."""


def respond(command: Command, facts: SessionFacts) -> Response:
    """What the command does in a session with these facts.

    The reply is true if its effect is made in the transaction that read the facts. `/help`,
    `/status`, `/why`, `/whoami` and words that are no command have no effect.
    """
    response = _DOES[command.name](command, facts)
    if len(response.reply) <= REPLY_CHARS_MAX:
        return response
    return replace(response, reply=response.reply[: REPLY_CHARS_MAX - 1] + "…")


def _help(_command: Command, _facts: SessionFacts) -> Response:
    return Response(reply=HELP)


def _unknown(command: Command, _facts: SessionFacts) -> Response:
    said = excerpt(command.said, 40)
    word = said.removeprefix("/").partition("@")[0].casefold()
    near = get_close_matches(word, [name.value for name in CommandName], n=1)
    guess = f" Did you mean /{near[0]}?" if near else ""
    return Response(reply=f"I do not know {said}.{guess} /help lists what I understand.")


def _stop(command: Command, facts: SessionFacts) -> Response:
    ends_processes = command.argument.casefold().strip(" .,!") == "all"
    has_goal = facts.goal is not None and facts.goal.state is not GoalState.PAUSED
    has_work = facts.open_turn is not None or facts.waiting > 0 or facts.unsent > 0 or has_goal
    has_work = has_work or bool(facts.calendar.at_work) or bool(facts.children)
    if ends_processes and (has_work or facts.running_processes):
        sentences = [*_stopped(facts), *_ending(facts.running_processes)]
        return Response(reply=" ".join(sentences), cut=CutKind.STOP_ALL)
    if not has_work:
        sentences = ["There is nothing to stop.", *_still_running(facts.running_processes)]
        return Response(reply=" ".join(sentences))
    sentences = [*_stopped(facts), *_still_running(facts.running_processes)]
    return Response(reply=" ".join(sentences), cut=CutKind.STOP)


def _new(_command: Command, facts: SessionFacts) -> Response:
    if facts.open_turn is None and facts.last_turn is None and not facts.waiting:
        return Response(reply="Nothing has been said here yet: this is a new conversation.")
    sentences = [
        "This is a new conversation. The old one is kept, but I no longer look at it.",
        *_stopped(facts),
        *_still_running(facts.running_processes),
    ]
    return Response(reply=" ".join(sentences), cut=CutKind.NEW)


def _status(_command: Command, facts: SessionFacts) -> Response:
    lines = [_standing(facts.open_turn, facts.now_ms)] if facts.open_turn else _idle(facts)
    if facts.waiting:
        lines.append(f"Waiting behind it: {_counted(facts.waiting, 'message')}.")
    if facts.owed:
        lines.append(f"On the way to you: {_counted(facts.owed, 'message')}.")
    if facts.calendar.at_work:
        lines.append(f"Beside it, schedules are at work: {_quoted(facts.calendar.at_work)}.")
    if facts.children:
        lines.append(f"Sub-agents: {', '.join(facts.children)}.")
    if facts.goal is not None:
        lines.append(f"Goal: {time_words.goal_status(facts.goal, facts.now_ms)}")
    if facts.running_processes:
        lines.append(f"Running in the background: {_named(facts.running_processes)}.")
    return Response(reply="\n".join(lines))


def _why(_command: Command, facts: SessionFacts) -> Response:
    turn = facts.open_turn or facts.last_turn
    if turn is None:
        return Response(reply="Nothing has been asked here yet, so there is nothing to explain.")
    standing = _standing(turn, facts.now_ms)
    header = f"{standing} ({shown('turn', turn.turn_id)})"
    plainly = _reason(turn, facts)
    room = REPLY_CHARS_MAX - len(header) - sum(map(len, plainly)) - 60
    below = [f"Sub-agents: {', '.join(facts.children)}."] if facts.children else []
    room -= sum(map(len, below))
    return Response(reply="\n".join([header, *plainly, *below, *_story(turn.story, room)]))


def _reason(turn: TurnGlance, facts: SessionFacts) -> list[str]:
    """What keeps it from being answered, and the remedy; empty if nothing does."""
    if turn.state is TurnState.WAITING and facts.question is not None:
        return [f"Why: {why_asked(facts.question.text)}. Answer it here, or /stop ends it."]
    if turn.state in (TurnState.ANSWERED, TurnState.DONE):
        return []
    if turn.state in CLOSED:
        return [_plainly(why_closed(turn.state, turn.event, turn.reason, turn.deaths))]
    if turn.held_up is not None and (turn.is_worked_on or turn.state is TurnState.QUEUED):
        return [_plainly(turn.held_up)]
    if turn.is_worked_on:
        return []
    why = why_now(turn.state, turn.event, turn.verdict, None, is_running=True, is_worked_on=False)
    if why is None:
        return []
    drops = "; /drop ends it" if why.rule == HELD_BACK else ""
    return [f"Why: {why.because}{drops}."]


def _plainly(reason: Reason) -> str:
    remedy = f" What helps: {reason.remedy}." if reason.remedy else ""
    return f"Why: {reason.words}.{remedy}"


def _approve(command: Command, facts: SessionFacts) -> Response:
    refusal = _no_approval(facts)
    if refusal is not None:
        return Response(reply=refusal)
    asked = facts.question
    if asked is not None and (asked.is_elsewhere or not asked.is_shown):
        why = NotAnAnswer.TOO_LONG if asked.is_elsewhere else NotAnAnswer.NOT_SHOWN
        return Response(reply=NO_YES_HERE[why])
    if command.argument.casefold() == ALWAYS.choice_id and asked is not None and asked.may_be_kept:
        reply = f"Approved, and always in this chat: {_question(facts)}. /rules lists what is."
        return Response(reply=reply, ruling=Ruling(is_yes=True, keeps=True))
    if command.argument:
        # A yes with a condition is no yes: the call would run without it.
        return Response(
            reply="I have not taken that as a yes, because there are words behind it. Write "
            "/approve alone to allow it as it is, or /deny and what you want instead."
        )
    return Response(reply=f"Approved: {_question(facts)}.", ruling=Ruling(is_yes=True))


def _deny(command: Command, facts: SessionFacts) -> Response:
    refusal = _no_approval(facts)
    if refusal is not None:
        return Response(reply=refusal)
    ruling = Ruling(is_yes=False, words=command.argument)
    return Response(reply=f"Denied: {_question(facts)}.", ruling=ruling)


def _no_approval(facts: SessionFacts) -> str | None:
    """Why there is nothing to approve or deny; None if there is."""
    asked, turn = facts.question, facts.open_turn
    if turn is not None and not turn.is_allowed:
        return f"I cannot go on with this: {NOT_ALLOWED}"
    if asked is None:
        return "There is nothing to approve or deny: I am not asking for anything."
    words = _question(facts)
    if asked.end is None and asked.kind is QuestionKind.APPROVAL and facts.no_ruling is not None:
        return NO_RULING[facts.no_ruling]
    match asked.end:
        case QuestionEnd.EXPIRED:
            return f"{words} has expired: no answer came in time, and I did not do it."
        case QuestionEnd.REPLACED:
            return f"That question is closed. The open one is {words}."
        case None if asked.kind is QuestionKind.ANSWER:
            return (
                f"My question is {words}, and it is not about allowing something: /approve and "
                "/deny do not answer it. Just write your answer."
            )
        case None if asked.kind is QuestionKind.OFFER:
            return f"My question is {words}. /approve and /deny do not answer it: write yes or no."
        case None:
            return None


def _bare(command: Command, _facts: SessionFacts) -> Response:
    """`/queue` or `/steer` without words; with words it is a message and never comes here."""
    what = "what I shall do next" if command.name is CommandName.QUEUE else "what I shall mind now"
    return Response(reply=f"Write it behind the command: /{command.name} {what}.")


def _question(facts: SessionFacts) -> str:
    return "" if facts.question is None else f"«{excerpt(facts.question.text, 200)}»"


def _restart(command: Command, facts: SessionFacts) -> Response:
    if not facts.role.is_owner:
        return Response(reply="Only an owner can start me again. I go on as I am.")
    if command.trouble:
        return Response(
            reply="I have not restarted, and go on as I am: with the configuration as it is now I "
            f"could not start. {excerpt(command.trouble, TROUBLE_CHARS_MAX)}"
        )
    return Response(reply="I am restarting, and will say so here when I am back.", restarts=True)


_DOES: dict[CommandName | None, Callable[[Command, SessionFacts], Response]] = {
    None: _unknown,
    CommandName.HELP: _help,
    CommandName.NEW: _new,
    CommandName.STOP: _stop,
    CommandName.STATUS: _status,
    CommandName.WHY: _why,
    CommandName.JOBS: jobs,
    CommandName.RESTART: _restart,
    CommandName.APPROVE: _approve,
    CommandName.DENY: _deny,
    CommandName.QUEUE: _bare,
    CommandName.STEER: _bare,
    CommandName.BUSY: busy,
    CommandName.RESUME: resume,
    CommandName.DROP: drop,
    CommandName.RETRY: retry,
    CommandName.RESUME_POLICY: resume_policy,
    CommandName.LISTEN: listen,
    CommandName.WHOAMI: whoami,
    CommandName.FORGET: forget,
    CommandName.RULES: rules,
    CommandName.CRON: cron,
    CommandName.REMIND: remind,
    CommandName.GOAL: goal,
    CommandName.AGENT: agent,
    CommandName.MODEL: model,
    CommandName.USAGE: usage,
    CommandName.BUDGET: budget,
    CommandName.MEMORY: memory,
}


def _stopped(facts: SessionFacts) -> list[str]:
    sentences = []
    if facts.open_turn is not None:
        sentences.append(f"Stopped: {_request(facts.open_turn)}.")
    if facts.waiting:
        verb = "was" if facts.waiting == 1 else "were"
        sentences.append(f"{_counted(facts.waiting, 'waiting message')} {verb} dropped.")
    if facts.unsent:
        verb = "is" if facts.unsent == 1 else "are"
        sentences.append(
            f"Stopped: {_counted(facts.unsent, 'part')} of my answer {verb} not sent any more."
        )
        if facts.on_the_way:
            sentences.append(f"{_counted(facts.on_the_way, 'part')} may still arrive.")
    return [*sentences, *_taken_away(facts)]


def _taken_away(facts: SessionFacts) -> list[str]:
    """Occasions of schedules that waited, and a goal that was under way."""
    names = _quoted(facts.calendar.waiting)
    sentences = [f"Not done this time: {names}."] if names else []
    if facts.calendar.at_work:
        sentences.append(f"Stopped: {_quoted(facts.calendar.at_work)}.")
    if facts.children:
        sentences.append(f"Stopped: {_counted(len(facts.children), 'sub-agent')}.")
    if facts.goal is not None and facts.goal.state is not GoalState.PAUSED:
        sentences.append(f"The goal «{excerpt(facts.goal.text)}» does not go on by itself.")
    return sentences


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"«{excerpt(name, 60)}»" for name in names)


def _still_running(processes: Sequence[str]) -> list[str]:
    if not processes:
        return []
    them = "it" if len(processes) == 1 else "them"
    return [f"Still running: {_named(processes)}. /stop all ends {them}, too."]


def _ending(processes: Sequence[str]) -> list[str]:
    return [f"I am ending: {_named(processes)}."] if processes else []


def _named(processes: Sequence[str]) -> str:
    names = [excerpt(name, 60) for name in processes[:PROCESSES_SHOWN_MAX]]
    more = len(processes) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _idle(facts: SessionFacts) -> list[str]:
    if facts.last_turn is None:
        return ["I am idle: nothing has been asked here yet."]
    return ["I am idle.", f"Last: {_standing(facts.last_turn, facts.now_ms)}"]


def _standing(turn: TurnGlance, now_ms: int) -> str:
    """Where the turn stands, in one sentence."""
    request = _request(turn)
    begun, changed = ago(turn.opened_ms, now_ms), ago(turn.changed_ms, now_ms)
    because = f" ({excerpt(failure(turn.reason), 200)})" if turn.reason else ""
    steps = f"{_counted(turn.steps, 'step')} so far"
    stands = where_it_stands(turn.state, turn.verdict, is_worked_on=turn.is_worked_on)
    begin = stands[0].upper() + stands[1:]
    match turn.state:
        case TurnState.QUEUED if turn.verdict is None:
            return f"{begin}: {request}, begun {begun}."
        case TurnState.QUEUED | TurnState.RUNNING:
            return f"{begin}: {request}, begun {begun}, {steps}, the last change {changed}."
        case TurnState.WAITING:
            return f"{begin}: {request}, asked {changed}, {steps}."
        case TurnState.ANSWERED:
            return f"{begin}: {request}, {changed}."
        case _:
            return f"{begin} {changed}: {request}{because}."


def _story(story: Sequence[str], room: int) -> list[str]:
    """The newest lines of the story that fit into `room` characters, oldest first."""
    kept: list[str] = []
    for line in reversed(story):
        told = f"• {excerpt(line, STORY_LINE_CHARS_MAX)}"
        room -= len(told) + 1
        if room < 0:
            break
        kept.append(told)
    left_out = len(story) - len(kept)
    first = [f"({_counted(left_out, 'earlier line')} left out)"] if left_out else []
    return [*first, *reversed(kept)]


def _request(turn: TurnGlance) -> str:
    words = excerpt(turn.request)
    return f"«{words}»" if words else "what a background process reported"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
