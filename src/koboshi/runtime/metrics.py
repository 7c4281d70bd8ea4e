"""What `/metrics` tells: counted from the journal since this boot, and how things stand now.

Counters begin at 0 with each boot, as Prometheus expects. Nothing is counted in the paths of
messages: a look reads the journal behind the last look. No label names a person or a chat.
"""

import os
import platform
import re
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from anyio import Lock

from koboshi.domain.worker import Breaker, Worker
from koboshi.ports.clock import Clock
from koboshi.ports.store import Store
from koboshi.ports.views import Happened, Status, Tally
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.metrics_text import Metric, gauge, labelled, render

DATABASE_NAME = "koboshi.db"
_SLUG = re.compile(r"[a-z][a-z-]{0,39}")

COUNTERS = {
    "koboshi_inbox_received_total": "Messages, commands and reports that were stored.",
    "koboshi_inbox_refused_total": "What arrived and was set aside, by reason.",
    "koboshi_turns_total": "Turns that ended, by outcome.",
    "koboshi_turn_resumes_total": "What recovery decided, by the rule that spoke.",
    "koboshi_steps_total": "Steps appended to transcripts, by kind.",
    "koboshi_calls_started_total": "Calls of tools that were started.",
    "koboshi_outbox_sent_total": "Deliveries that a platform has taken.",
    "koboshi_outbox_dead_total": "Deliveries that were rejected or given up.",
    "koboshi_outbox_postponed_total": "Sends that have to be made again.",
    "koboshi_jobs_total": "Processes that ended, by how.",
}


@dataclass(slots=True, kw_only=True)
class Metrics:
    store: Store
    clock: Clock
    health: GatewayHealth
    worker: Worker
    home: Path
    commits: Callable[[], int]
    _totals: dict[str, Counter[tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    _place: int | None = None
    _looking: Lock = field(default_factory=Lock)

    async def text(self) -> str:
        """The page, as it is now."""
        async with self._looking:
            status = await self.store.views.status()
            tally = await self.store.views.tally(self.worker.worker_id, self._place)
            self._place = tally.place
            for each in tally.happened:
                self._count(each)
        return render(
            (
                *self._gateway(status, tally),
                *self._standing(status, tally),
                *self._counters(),
                *self._files(),
                *_process(self.worker),
            )
        )

    def _count(self, each: Happened) -> None:
        for name, labels in counted_as(each):
            self._totals.setdefault(name, Counter())[labels] += each.count

    def _counters(self) -> Iterator[Metric]:
        for name, words in COUNTERS.items():
            samples = dict(self._totals.get(name, {}))
            yield Metric(name=name, kind="counter", words=words, samples=samples)

    def _gateway(self, status: Status, tally: Tally) -> Iterator[Metric]:
        about = {"sqlite": status.sqlite, "python": platform.python_version()}
        words = "What runs here."
        yield gauge("koboshi_build_info", words, 1, version=self.worker.version, **about)
        started = self.worker.started_ms / 1000
        yield gauge("koboshi_boot_time_seconds", "When this boot began, since 1970.", started)
        yield Metric(
            name="koboshi_unclean_boots_total",
            kind="counter",
            words="Boots of this home that did not end by their own will.",
            samples={labelled(cause=how): n for how, n in tally.unclean_boots.items()},
        )
        is_safe = status.breaker != Breaker.CLOSED
        yield gauge("koboshi_safe_mode", "1 while the boot breaker holds turns back.", is_safe)
        is_draining = self.health.stop_asked.is_set()
        yield gauge("koboshi_draining", "1 while the gateway leaves.", is_draining)
        ready = {labelled(check=name): float(ok) for name, ok, _ in self.health.readiness()}
        words = "1 where a check of /readyz holds."
        yield Metric(name="koboshi_ready", kind="gauge", words=words, samples=ready)
        up = {
            labelled(platform=name.partition(":")[0], account=name.partition(":")[2]): float(
                why is None
            )
            for name, why in self.health.channels().items()
        }
        words = "1 where a platform is reached."
        yield Metric(name="koboshi_adapter_up", kind="gauge", words=words, samples=up)

    def _standing(self, status: Status, tally: Tally) -> Iterator[Metric]:
        now_ms = self.clock.now_ms()
        yield gauge("koboshi_inbox_depth", "What waits to be worked on.", status.inbox_waiting)
        age = _age_s(tally.waiting_since_ms, now_ms)
        yield gauge("koboshi_inbox_oldest_age_seconds", "How long the oldest waits.", age)
        yield gauge("koboshi_outbox_depth", "Deliveries that are owed.", status.outbox_unsettled)
        age = _age_s(tally.owed_since_ms, now_ms)
        yield gauge("koboshi_outbox_oldest_age_seconds", "How long the oldest is owed.", age)
        yield gauge("koboshi_outbox_held", "Deliveries that somebody has to release.", tally.held)
        words = "Owed deliveries of which an earlier send has an unknown outcome."
        yield gauge("koboshi_outbox_ambiguous", words, tally.ambiguous)
        running = status.turns.get("running", 0)
        yield gauge("koboshi_turns_running", "Turns that are worked on.", running)
        yield Metric(
            name="koboshi_turns_waiting",
            kind="gauge",
            words="Open turns that nobody works on, by state.",
            samples={
                labelled(**{"for": state}): status.turns.get(state, 0)
                for state in ("queued", "waiting", "suspended", "answered")
            },
        )
        yield gauge("koboshi_jobs_running", "Processes that have no end.", tally.processes)

    def _files(self) -> Iterator[Metric]:
        path = self.home / DATABASE_NAME
        size, log_size = _size(path), _size(path.with_name(f"{path.name}-wal"))
        yield gauge("koboshi_db_size_bytes", "The database.", size)
        yield gauge("koboshi_db_wal_bytes", "Its log.", log_size)
        words = "Transactions of this boot."
        commits = {labelled(): float(self.commits())}
        yield Metric(name="koboshi_db_commits_total", kind="counter", words=words, samples=commits)
        newest = self.store.backups.newest_ms()
        if newest is not None:
            age = _age_s(newest, self.clock.now_ms())
            yield gauge("koboshi_db_backup_age_seconds", "Since the newest backup.", age)
        free = shutil.disk_usage(self.home).free
        yield gauge("koboshi_disk_free_bytes", "Free space where the home is.", free)


def counted_as(each: Happened) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
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
        case _:
            return


def _slug(label: str | None) -> str:
    """A label of ours; whatever else is there could be anything, and endlessly many."""
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
    cpu = {labelled(): used.ru_utime + used.ru_stime}
    words = "Processor time."
    yield Metric(name="process_cpu_seconds_total", kind="counter", words=words, samples=cpu)
    started = worker.started_ms / 1000
    yield gauge("process_start_time_seconds", "When it began, since 1970.", started)
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        opened = len(os.listdir("/proc/self/fd"))
    except OSError:
        return
    resident = pages * resource.getpagesize()
    yield gauge("process_resident_memory_bytes", "Memory in use.", resident)
    yield gauge("process_open_fds", "Open files.", opened)
