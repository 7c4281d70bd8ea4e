"""`/jobs`: background processes, seen from the chat. Pure."""

from koboshi.domain.command import Command, JobGlance, Response, SessionFacts
from koboshi.domain.durations import ago, duration
from koboshi.domain.ids import ProcessId, parse_shown, shown
from koboshi.domain.phrases import excerpt
from koboshi.domain.process import ProcessState, how_ended
from koboshi.domain.watch import last_lines

LISTED_MAX = 20
LOG_CHARS_MAX = 3_000
USAGE = "/jobs lists them, /jobs log p1 shows the output of one, /jobs kill p1 ends it."

LOST = "Its end was not seen, so something of it may still run. I am ending what is left of it."


def process_named(argument: str) -> ProcessId | None:
    """The process in `log p3` or `kill p3`; the p may be left out."""
    words = argument.split()
    if len(words) != 2:
        return None
    word = words[1].strip(" .,;:!?«»\"'`#").casefold()
    parsed = parse_shown(f"p{word}" if word.isascii() and word.isdigit() else word)
    return ProcessId(parsed[1]) if parsed is not None and parsed[0] == "process" else None


def asks_for_log(command: Command) -> bool:
    return command.argument.casefold().startswith("log") and command.process_id is not None


def jobs(command: Command, facts: SessionFacts) -> Response:
    """What `/jobs` does."""
    verb = command.argument.split(maxsplit=1)[0].casefold() if command.argument.split() else "list"
    match verb:
        case "list":
            return Response(reply=_listed(facts))
        case "log" | "kill":
            pass
        case _:
            return Response(reply=f"I do not know “{excerpt(command.argument, 40)}”. {USAGE}")
    job = facts.named_job
    if job is None:
        return Response(reply=f"Which one? There is no such process in this chat. {USAGE}")
    if verb == "log":
        output = last_lines(command.output, LOG_CHARS_MAX) or "(no output)"
        return Response(reply=f"{_line(job, facts.now_ms)}\n{output}")
    if job.state is ProcessState.LOST:
        words = f"{_line(job, facts.now_ms)} {LOST}"
        return Response(reply=words, end_process=job.process_id)
    if job.ended_ms is not None:
        return Response(reply=f"It has ended already. {_line(job, facts.now_ms)}")
    return Response(reply=f"I am ending {_name(job)}.", end_process=job.process_id)


def _listed(facts: SessionFacts) -> str:
    if not facts.jobs:
        return "There are no background processes in this chat."
    return "\n".join(_line(job, facts.now_ms) for job in facts.jobs[:LISTED_MAX])


def _name(job: JobGlance) -> str:
    return f"{shown('process', job.process_id)} {excerpt(job.command, 60)}"


def _line(job: JobGlance, now_ms: int) -> str:
    if job.ended_ms is None:
        return f"{_name(job)}: running for {duration(now_ms - job.started_ms)}."
    how = how_ended(job.state, job.exit_code)
    took = duration(job.ended_ms - job.started_ms)
    return f"{_name(job)}: {how} {ago(job.ended_ms, now_ms)}, after {took}."
