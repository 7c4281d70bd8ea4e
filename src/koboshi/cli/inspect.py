"""`koboshi status` and `koboshi version`: what there is, at a glance."""

import platform
from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path

import click

from koboshi import __version__
from koboshi.cli.ask_owner import look, read_answer
from koboshi.cli.options import (
    counted,
    failures_told,
    home_options,
    json_option,
    moment,
    show_json,
)
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.replies import AgentStatus, StatusReply
from koboshi.control.requests import GetStatus
from koboshi.domain.boot import BREAKER_WORDS
from koboshi.domain.durations import ago, duration
from koboshi.domain.reasons import unheard_words
from koboshi.domain.standing import STANDS, stand_words
from koboshi.domain.worker import Breaker, EndedHow, Worker
from koboshi.ports.nodes import NodeView

SILENT_MS_MAX = 15_000
"""Three heartbeats."""

_ENDED = {
    EndedHow.STOPPED: "was stopped as asked",
    EndedHow.LEFTOVERS: "was stopped as asked and set its unfinished turns down",
    EndedHow.RESTART: "ended to start again",
    EndedHow.REBOOTED: "ended with the machine",
    EndedHow.REFUSED: "could not start as it was configured,",
}


@click.command()
@home_options
@json_option
def status(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """What the gateway is doing, or how it ended if it does not run."""
    with failures_told(as_json):
        found = look(home, config_file, GetStatus())
        answer = {**found.answer, "home": str(found.home)}
        if as_json:
            show_json(answer)
        else:
            click.echo(render_status(answer, SystemClock().now_ms()))


@click.command()
@json_option
def version(as_json: bool) -> None:
    """The version of koboshi and what it runs on."""
    import apsw

    versions = {
        "koboshi": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "platform": platform.platform(),
    }
    if as_json:
        show_json({"ok": True, **versions})
        return
    click.echo(f"koboshi {versions['koboshi']}")
    click.echo(f"Python {versions['python']}")
    click.echo(f"SQLite {versions['sqlite']} (apsw {versions['apsw']})")
    click.echo(versions["platform"])


class HomeStatus(StatusReply, frozen=True, kw_only=True):
    home: str


def render_status(answer: Mapping[str, object], now_ms: int, zone: tzinfo | None = None) -> str:
    """The answer in lines for a person. Raises CommandFailure for one of another version."""
    said = read_answer(answer, HomeStatus)
    lines = [_headline(said, now_ms, zone), f"home       {escaped(said.home)}"]
    before = said.previous if said.is_running else said.worker
    lines.append(f"{'before' if said.is_running else 'last':<10} {_ending(before, zone)}")
    # A gateway of an earlier version tells the states alone.
    stands = said.stands or said.turns
    turns = [f"{stands[each]} {stand_words(each)}" for each in STANDS if stands.get(each)]
    lines.append(f"turns      {', '.join(turns) or 'none open'}")
    lines.append(f"waiting    {counted(said.inbox_waiting, 'message')}")
    held = f", {said.outbox_held} held: `koboshi outbox release`" if said.outbox_held else ""
    lines.append(f"to send    {counted(said.outbox_unsettled, 'delivery', 'deliveries')}{held}")
    lines.append(f"sessions   {said.sessions}")
    if said.server is not None:
        far = f"{said.server.round_trip_ms:.1f} ms away"
        lines.append(f"store      {escaped(said.server.name)}, {far}")
        lines.append(f"           {escaped(said.server.standby)}")
    lines += [_node(each) for each in said.nodes]
    lines += [f"agent      {agent_line(each, now_ms)}" for each in said.agents]
    if said.is_running and said.worker is not None and said.worker.report:
        lines.append(f"boot       {escaped(said.worker.report)}")
    for each in said.neighbours:
        is_ours = each.name in ("model", "boundary")
        name = each.name if is_ours else f"server     {escaped(each.name)}"
        lines.append(f"{name:<10} {'' if each.ok else 'trouble: '}{escaped(each.reason)}")
    for name, words in said.heard.items():
        if name not in said.unreached:
            lines.append(f"channel    {escaped(name)}: {escaped(words)}")
    held_back = BREAKER_WORDS.get(Breaker(said.breaker))
    trouble = said.trouble or _silence(said, now_ms) or held_back
    if trouble:
        lines.append(f"trouble    {escaped(trouble)}")
    if said.gap:
        lines.append(f"trouble    {escaped(said.gap)}; `koboshi outbox release --all` settles it")
    if said.turns_unheard:
        lines.append(f"trouble    {unheard_words(said.turns_unheard)}")
    if wanted := restart_wanted(answer):
        lines.append(f"restart    {escaped(wanted)}: `koboshi restart`")
    for name, why in said.unreached.items():
        lines.append(f"trouble    {escaped(name)} cannot be reached: {escaped(why)}")
    return "\n".join(lines)


def agent_line(agent: AgentStatus, now_ms: int) -> str:
    """One process of a foreign agent."""
    does = (
        f"works on {agent.turn}" if agent.turn else f"idle, last used {ago(agent.used_ms, now_ms)}"
    )
    size = "" if agent.memory_bytes is None else f", {agent.memory_bytes / 1e6:.0f} MB"
    return f"{escaped(agent.agent)} ({agent.process} of {agent.session}): {does}{size}"


def _node(node: NodeView) -> str:
    """One gateway of the database."""
    words = [
        f"boot {node.worker_id}, koboshi {escaped(node.version)}",
        f"last beat {duration(node.silent_ms)} ago",
        counted(node.turns, "turn"),
    ]
    if node.processes:
        words.append(counted(node.processes, "process", "processes"))
    words += [f"receives and sends on {escaped(each)}" for each in node.accounts]
    if node.is_draining:
        words.append("is stopping")
    if node.differs_in:
        words.append(f"configured otherwise: {escaped(', '.join(node.differs_in))}")
    return f"node       {escaped(node.node)}: {', '.join(words)}"


def _headline(said: StatusReply, now_ms: int, zone: tzinfo | None) -> str:
    worker = said.worker
    if not said.is_running or worker is None:
        return "koboshi is not running"
    verb = "is stopping" if worker.is_draining else "is running"
    since = f"since {moment(worker.started_ms, zone)} ({duration(now_ms - worker.started_ms)})"
    return f"koboshi {worker.version} {verb} as pid {worker.pid}, {since}"


def restart_wanted(answer: Mapping[str, object]) -> str | None:
    """Why the gateway that answered should be restarted; None if it need not be, or none runs.

    It notices by itself that its files have changed. One that is older than that tells its version,
    and this command is what is installed.
    """
    worker = answer.get("worker")
    if not answer.get("is_running") or not isinstance(worker, Mapping):
        return None
    if isinstance(said := answer.get("restart"), str):
        return said
    running = worker.get("version")
    return None if running == __version__ else f"koboshi {running} runs, and this is {__version__}"


def _silence(said: StatusReply, now_ms: int) -> str | None:
    """What is wrong with a gateway that answers and yet gives no sign of life: it cannot write."""
    if not said.is_running or said.worker is None:
        return None
    silent_ms = now_ms - said.worker.heartbeat_ms
    if silent_ms <= SILENT_MS_MAX:
        return None
    return f"nothing could be written for {duration(silent_ms)}; the disk may be stuck"


def _ending(worker: Worker | None, zone: tzinfo | None) -> str:
    """How a boot ended. One whose end is not recorded yet did not end by its own will."""
    if worker is None:
        return "nothing: this is the first boot"
    how = worker.ended_how or EndedHow.KILLED
    if how in (EndedHow.KILLED, EndedHow.MEMORY):
        why = ", probably because memory ran out" if how is EndedHow.MEMORY else ""
        return (
            f"boot {worker.worker_id} was killed{why}; "
            f"its last sign of life was at {moment(worker.heartbeat_ms, zone)}"
        )
    at = moment(worker.ended_ms or worker.heartbeat_ms, zone)
    return f"boot {worker.worker_id} {_ENDED[how]} at {at}"
