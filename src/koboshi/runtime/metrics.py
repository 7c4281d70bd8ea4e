"""What `/metrics` tells: counted from the journal since this boot, and how things stand now.

Counters begin at 0 with each boot, as Prometheus expects. A look reads the journal behind the last
look; what no row tells is noted in memory as it happens (`meter.py`, `measured.py`). No label
names a person or a chat.
"""

import os
import platform
import re
import resource
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from anyio import Lock

from koboshi.control.replies import AgentStatus
from koboshi.domain.schedule import OccasionVerdict
from koboshi.domain.standing import STANDS
from koboshi.domain.timing import Timing
from koboshi.domain.turn import TurnState
from koboshi.domain.worker import Breaker, Worker
from koboshi.ports.clock import Clock
from koboshi.ports.server import ServerFigures
from koboshi.ports.store import Store
from koboshi.ports.tally import Called, Happened, Tally, Took
from koboshi.ports.views import Status
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.meter import COUNTED, TIMED, Labels, Meter, labelled
from koboshi.runtime.metrics_text import Histogram, Metric, one, render

DATABASE_NAME = "koboshi.db"
_SLUG = re.compile(r"[a-z][a-z-]{0,39}")
_TOOL = re.compile(r"[a-z0-9_]{1,64}")

_VERDICTS = frozenset(OccasionVerdict)
COUNTERS = (
    "koboshi_inbox_received_total",
    "koboshi_inbox_refused_total",
    "koboshi_turns_total",
    "koboshi_turn_resumes_total",
    "koboshi_steps_total",
    "koboshi_calls_started_total",
    "koboshi_outbox_sent_total",
    "koboshi_outbox_dead_total",
    "koboshi_outbox_postponed_total",
    "koboshi_jobs_total",
    "koboshi_turn_quarantines_total",
    "koboshi_tool_unknown_outcomes_total",
    "koboshi_approvals_total",
    "koboshi_occasions_total",
    "koboshi_goal_moves_total",
    "koboshi_children_total",
)
"""Counted from what is stored."""
_TAKEN = {
    "turn": ("koboshi_turn_duration_seconds", "outcome"),
    "message": ("koboshi_message_latency_seconds", "platform"),
    "tool": ("koboshi_tool_duration_seconds", "tool"),
}


class Writes(Protocol):
    """The writer's own figures."""

    @property
    def commits(self) -> int: ...

    @property
    def commit_times(self) -> Timing: ...

    @property
    def refusals(self) -> Mapping[str, int]: ...

    @property
    def fenced(self) -> int: ...

    @property
    def figures(self) -> ServerFigures | None:
        """What a store on a server counts; None where the store is a file."""
        ...

    @property
    def reserve_bytes(self) -> int: ...


def _from_zero() -> dict[str, Counter[Labels]]:
    """Counters with an alert on their growth. They exist before anything happens: a counter that
    first appears has not grown, to an observer."""
    outcomes = {labelled(outcome=outcome): 0 for outcome in ("done", "failed", "stopped")}
    return {"koboshi_turns_total": Counter(outcomes)}


@dataclass(slots=True, kw_only=True)
class Metrics:
    store: Store
    clock: Clock
    health: GatewayHealth
    worker: Worker
    home: Path
    writes: Writes
    meter: Meter
    agents: Callable[[], Awaitable[Sequence[AgentStatus]]]
    """The foreign agents that live here."""
    _totals: dict[str, Counter[Labels]] = field(default_factory=_from_zero)
    _times: dict[str, dict[Labels, Timing]] = field(
        default_factory=lambda: {name: {} for name, _ in _TAKEN.values()}
    )
    _place: int | None = None
    _looking: Lock = field(default_factory=Lock)

    async def text(self) -> str:
        """The page, as it is now."""
        async with self._looking:
            status = await self.store.views.status()
            tally = await self.store.views.tally(self.worker.worker_id, self._place)
            self._place = tally.place
            self._count(tally)
            owners = await self.store.accounts.owners() if self.store.is_shared else {}
        living = await self.agents()
        mine = {
            labelled(channel=name): float(owner == self.worker.worker_id)
            for name, owner in owners.items()
        }
        return render(
            (
                Metric("koboshi_account_owner", mine),
                *self._gateway(status, tally),
                *self._standing(status, tally),
                *self._counters(),
                *self._histograms(),
                *_agents(living),
                *self._files(),
                *_process(self.worker),
            )
        )

    def _count(self, tally: Tally) -> None:
        for each in tally.happened:
            for name, labels in counted_as(each):
                self._totals.setdefault(name, Counter())[labels] += each.count
        for call in tally.called:
            for name, labels in called_as(call):
                self._totals.setdefault(name, Counter())[labels] += call.count
        for took in tally.took:
            name, labels = taken_as(took)
            bound_s = None if took.bound_ms is None else took.bound_ms / 1000
            timing = self._times[name].setdefault(labels, Timing())
            timing.add(bound_s, took.count, took.total_ms / 1000)

    def _counters(self) -> Iterator[Metric]:
        for name in COUNTERS:
            yield Metric(name, dict(self._totals.get(name, {})))
        for name in COUNTED:
            yield Metric(name, dict(self.meter.counts[name]))
        again = {labelled(code=code): times for code, times in self.writes.refusals.items()}
        yield Metric("koboshi_db_errors_total", again)
        yield one("koboshi_lease_fenced_total", self.writes.fenced)
        yield one("koboshi_db_commits_total", self.writes.commits)
        yield one("koboshi_thaw_events_total", self.health.heartbeat.suspends.count)
        yield from self._server()

    def _server(self) -> Iterator[Metric]:
        figures = self.writes.figures
        if figures is None:
            return
        yield one("koboshi_lease_age_seconds", figures.lease_age_s)
        yield one("koboshi_store_rounds_total", figures.rounds)
        yield one("koboshi_store_reconnects_total", figures.reconnects)
        unknown = {
            labelled(resolution=how): count for how, count in figures.unknown_commits.items()
        }
        yield Metric("koboshi_unknown_commits_total", unknown)

    def _histograms(self) -> Iterator[Histogram]:
        for name, times in self._times.items():
            yield Histogram(name, times)
        for name in TIMED:
            yield Histogram(name, dict(self.meter.times[name]))
        commits = {labelled(): self.writes.commit_times}
        yield Histogram("koboshi_db_commit_duration_seconds", commits)
        if self.writes.figures is not None:
            waits = {labelled(): self.writes.figures.lock_waits}
            yield Histogram("koboshi_lock_wait_seconds", waits)

    def _gateway(self, status: Status, tally: Tally) -> Iterator[Metric]:
        about = {"sqlite": status.sqlite, "python": platform.python_version()}
        yield one("koboshi_build_info", 1, version=self.worker.version, **about)
        yield one("koboshi_boot_time_seconds", self.worker.started_ms / 1000)
        unclean = {labelled(cause=how): count for how, count in tally.unclean_boots.items()}
        yield Metric("koboshi_unclean_boots_total", unclean)
        yield one("koboshi_safe_mode", status.breaker != Breaker.CLOSED)
        yield one("koboshi_draining", self.health.stop_asked.is_set())
        ready = {labelled(check=name): float(ok) for name, ok, _ in self.health.readiness()}
        yield Metric("koboshi_ready", ready)
        up = {_account(name): float(why is None) for name, why in self.health.channels().items()}
        yield Metric("koboshi_adapter_up", up)
        yield from self._hearing()
        well = {labelled(neighbour=name): float(ok) for name, ok, _ in self.health.neighbours()}
        yield Metric("koboshi_neighbour_up", well)
        yield one("koboshi_event_loop_lag_seconds", self.health.heartbeat.lag_seconds)

    def _hearing(self) -> Iterator[Metric]:
        now_ms, hearings = self.clock.now_ms(), self.health.hearings()
        ages = {
            _account(name): ago_ms / 1000
            for name, each in hearings.items()
            if (ago_ms := each.heard_ago_ms(now_ms)) is not None
        }
        yield Metric("koboshi_adapter_heard_age_seconds", ages)
        behind = {_account(name): float(each.chats_behind) for name, each in hearings.items()}
        yield Metric("koboshi_adapter_chats_behind", behind)
        since = {_account(name): each.behind_ms(now_ms) / 1000 for name, each in hearings.items()}
        yield Metric("koboshi_adapter_behind_seconds", since)

    def _standing(self, status: Status, tally: Tally) -> Iterator[Metric]:
        now_ms = self.clock.now_ms()
        yield one("koboshi_inbox_depth", status.inbox_waiting)
        yield one("koboshi_inbox_oldest_age_seconds", _age_s(tally.waiting_since_ms, now_ms))
        yield one("koboshi_outbox_depth", status.outbox_unsettled)
        yield one("koboshi_outbox_oldest_age_seconds", _age_s(tally.owed_since_ms, now_ms))
        yield one("koboshi_outbox_held", tally.held)
        yield one("koboshi_outbox_ambiguous", tally.ambiguous)
        yield one("koboshi_turns_running", status.stands.get(TurnState.RUNNING, 0))
        waiting: dict[Labels, float] = {
            labelled(**{"for": stand}): status.stands.get(stand, 0)
            for stand in STANDS
            if stand != TurnState.RUNNING
        }
        yield Metric("koboshi_turns_waiting", waiting)
        yield one("koboshi_jobs_running", tally.processes)
        yield one("koboshi_children_open", tally.children)

    def _files(self) -> Iterator[Metric]:
        path = self.home / DATABASE_NAME
        if path.exists():
            yield one("koboshi_db_size_bytes", _size(path))
            yield one("koboshi_db_wal_bytes", _size(path.with_name(f"{path.name}-wal")))
        newest = self.store.backups.newest_ms()
        if newest is not None:
            yield one("koboshi_db_backup_age_seconds", _age_s(newest, self.clock.now_ms()))
            # A backup gets its name only after a full read-back.
            yield one("koboshi_db_integrity_last_ok_timestamp_seconds", newest / 1000)
        yield one("koboshi_disk_free_bytes", shutil.disk_usage(self.home).free)
        yield one("koboshi_disk_reserve_bytes", self.writes.reserve_bytes)


def _agents(living: Sequence[AgentStatus]) -> Iterator[Metric]:
    many: Counter[Labels] = Counter(labelled(agent=each.agent) for each in living)
    memory: Counter[Labels] = Counter()
    for each in living:
        if each.memory_bytes is not None:
            memory[labelled(agent=each.agent)] += each.memory_bytes
    yield Metric("koboshi_agent_processes", dict(many))
    yield Metric("koboshi_agent_memory_bytes", dict(memory))


def _account(channel: str) -> Labels:
    platform, _, account = channel.partition(":")
    return labelled(platform=platform, account=account)


def counted_as(each: Happened) -> Iterator[tuple[str, Labels]]:
    """The counters that a line of the journal moves, with their labels. Pure."""
    name = (each.channel or "").partition(":")[0] or "none"
    match each.subject, each.event:
        case "message", "accepted" if each.after == "ignored":
            yield "koboshi_inbox_refused_total", labelled(reason=_slug(each.label))
        case "message", "accepted":
            yield "koboshi_inbox_received_total", labelled(platform=name, kind=each.after or "")
        case "message", "dropped":
            yield "koboshi_inbox_refused_total", labelled(reason=_slug(each.label))
        case "turn", event:
            if each.after in ("done", "stopped", "failed"):
                yield "koboshi_turns_total", labelled(outcome=each.after)
            if each.label and each.after == "failed":
                yield "koboshi_turn_quarantines_total", labelled(reason=_slug(each.label))
            if each.label:
                labels = labelled(decision=event, reason=_slug(each.label))
                yield "koboshi_turn_resumes_total", labels
        case "step", kind:
            yield "koboshi_steps_total", labelled(kind=kind)
        case "call", "started":
            yield "koboshi_calls_started_total", labelled()
        case "delivery", "delivered":
            yield "koboshi_outbox_sent_total", labelled(platform=name)
        case "delivery", "rejected" | "abandoned":
            yield "koboshi_outbox_dead_total", labelled(platform=name, reason=each.event)
        case "delivery", "postponed":
            yield "koboshi_outbox_postponed_total", labelled(platform=name)
        case "process", "ended":
            yield "koboshi_jobs_total", labelled(outcome=each.after or "")
        case "schedule", verdict if verdict in _VERDICTS:
            yield "koboshi_occasions_total", labelled(verdict=verdict)
        case "goal", state:
            yield "koboshi_goal_moves_total", labelled(state=state)
        case "child", "ended":
            yield "koboshi_children_total", labelled(outcome=each.label or "")
        case _:
            return


def called_as(each: Called) -> Iterator[tuple[str, Labels]]:
    """The counters that calls of one kind move. Pure."""
    if each.outcome == "unknown":
        labels = labelled(tool=_tool(each.tool), effect=each.effect)
        yield "koboshi_tool_unknown_outcomes_total", labels
    if each.decision is not None:
        yield "koboshi_approvals_total", labelled(decision=each.decision)


def taken_as(each: Took) -> tuple[str, Labels]:
    """The histogram that something belongs to. Pure."""
    name, label = _TAKEN[each.what]
    words = {
        "turn": each.label,
        "message": each.label.partition(":")[0],
        "tool": _tool(each.label),
    }
    return name, labelled(**{label: words[each.what]})


def _tool(name: str) -> str:
    return name if _TOOL.fullmatch(name) else "other"


def _slug(label: str | None) -> str:
    """A label of our own set; any other text could take endlessly many values."""
    return label if label and _SLUG.fullmatch(label) else "other"


def _age_s(since_ms: int | None, now_ms: int) -> float:
    return 0.0 if since_ms is None else max(0.0, (now_ms - since_ms) / 1000)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _process(worker: Worker) -> Iterator[Metric]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield one("process_cpu_seconds_total", used.ru_utime + used.ru_stime)
    yield one("process_start_time_seconds", worker.started_ms / 1000)
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        opened = len(os.listdir("/proc/self/fd"))
    except OSError:
        return
    yield one("process_resident_memory_bytes", pages * resource.getpagesize())
    yield one("process_open_fds", opened)
