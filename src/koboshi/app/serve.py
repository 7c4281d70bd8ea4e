"""A gateway from start to stop."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog
from anyio import Event, create_task_group, move_on_after, open_signal_receiver, to_thread
from anyio.abc import TaskStatus

from koboshi import __version__
from koboshi.app.birth import UNKNOWN, birth_of
from koboshi.app.boot_config import boot_config_of, opened_model
from koboshi.app.boundary import (
    KEPT_NAME,
    boundary_words,
    enclosure_of,
    guard_of,
    is_held,
    limit_words,
)
from koboshi.app.builders.control import (
    PROCESSES_NAME,
    backlog_limits,
    erasing_of,
    goal_limits,
    pairing_limits,
    report_limits,
)
from koboshi.app.builders.gateway import Built, build
from koboshi.app.builders.shared import Shared
from koboshi.app.plugins import load_plugins
from koboshi.app.servers import keep_connected
from koboshi.app.start_check import usable_model, workdir_warnings
from koboshi.app.stores import GatewayStore, open_configured
from koboshi.app.zone import zone_rules, zones_of
from koboshi.boundary.control_groups import ControlGroups
from koboshi.channels.common.held_listeners import HeldListeners
from koboshi.channels.web.channel import WebChannel
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.config.home_modes import close_files, close_home
from koboshi.control.neighbours import Neighbours
from koboshi.domain.errors import StoreFailed, Unusable, is_or_holds
from koboshi.domain.phrases import members_now
from koboshi.domain.recovery import BootConfig
from koboshi.domain.shutdown import Leave
from koboshi.domain.watch import Notify
from koboshi.domain.worker import EndedHow, Worker
from koboshi.ports.model import Model
from koboshi.processes.inside_folders import InsideFolders
from koboshi.processes.installed import INSTALLED
from koboshi.processes.runners import LocalRunners
from koboshi.runtime.drain import Drain
from koboshi.runtime.host import Surroundings
from koboshi.runtime.indexing import Indexing
from koboshi.runtime.memory import count_kills
from koboshi.runtime.minutes import NoteMinutes
from koboshi.runtime.notify import Notifier
from koboshi.runtime.opening import Opening
from koboshi.runtime.outgoing_files import Parcels
from koboshi.runtime.retention import Forgetting
from koboshi.runtime.status_notifier import StatusNotifier
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.options import StoreOptions

log = structlog.get_logger()

BOOKED_SECONDS = 5.0
ROOT_REMEDY = (
    "as root, every command of the agent has the rights of root; give it a user of its own: "
    "koboshi service install --system --run-as USER"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    lock_wait_seconds: float
    accepts_loss: bool = False
    holds_outbox: bool = False
    """Whether nothing owed by now is sent before the operator releases it."""
    announce: Callable[[str, Callable[[], str | None]], None] = lambda _address, _make_link: None
    """Told the address, and how to make a link that lets a browser in, once it serves."""
    on_stopping: Callable[[], None] = lambda: None
    """Called when the stop begins, to bound it from outside."""
    wrong_configuration: Callable[[], str] = str
    """Reads the configuration again, and says why a start on it would be refused; empty if it would
    not. It reads files, and is called in a thread."""
    notifier: Notifier = field(default_factory=Notifier)
    surroundings: Surroundings = field(default_factory=Surroundings)
    listeners: HeldListeners = field(default_factory=HeldListeners)
    """Sockets that the gateway before this one has left, and that the next one gets."""
    is_supervised: bool = False
    """Whether a parent of ours starts the gateway again whenever it dies."""


async def serve(config: Config, options: RunOptions) -> bool:
    """Run a gateway on the configuration until it is asked to stop. Returns whether it is to be
    started again.

    Raises StoreRefused, Unusable or StoreFailed, alone or inside exception groups.
    """
    # An upgrade while we run must not mix its code with ours.
    with INSTALLED.guarded():
        async with opened_model(config, usable_model(config)) as model:
            return await _serve(config, options, model)


async def _serve(config: Config, options: RunOptions, model: Model) -> bool:
    clock, wakeups, world = SystemClock(), LocalWakeups(), boot_config_of(config)
    options.notifier.status("opening the store")
    store = await _open(config, options, world, clock, wakeups)
    for warning in (*config.warnings, *workdir_warnings(config), *store.warnings):
        log.warning("startup_warning", warning=warning)
    if os.geteuid() == 0:
        log.warning("runs_as_root", remedy=ROOT_REMEDY)
    _say_boundary(config)
    try:
        kills = count_kills()
        worker = await store.workers.start(
            socket.gethostname(), os.getpid(), birth_of(), __version__, kills
        )
        if members := await store.people.tell_of_roles():
            log.warning("members_now", reason=members_now(members))
        seconds = options.surroundings.drain_seconds(config.gateway.drain_seconds)
        shared = Shared(
            config=config,
            store=store,
            model=model,
            worker=worker,
            drain=Drain(wakeups=wakeups, seconds=seconds),
            clock=clock,
            wakeups=wakeups,
            has_recovered=Event(),
            runners=LocalRunners(config.home / PROCESSES_NAME, guard=guard_of(config)),
            enclosure=await to_thread.run_sync(enclosure_of, config, os.environ),
            neighbours=Neighbours(clock=clock, boundary=(is_held(config), boundary_words(config))),
            listeners=options.listeners,
            is_supervised=options.is_supervised,
            why_not_restart=partial(to_thread.run_sync, options.wrong_configuration),
        )
        async with _refusal_booked(store, worker):
            await _live(shared, options)
        return shared.drain.how is Leave.RESTART
    finally:
        await store.close()


@asynccontextmanager
async def _refusal_booked(store: GatewayStore, worker: Worker) -> AsyncIterator[None]:
    """A start that could not be is said to be one: without a word it would pass for a kill."""
    try:
        yield
    except (Unusable, ExceptionGroup) as error:
        if is_or_holds(error, Unusable) and not is_or_holds(error, StoreFailed):
            with move_on_after(BOOKED_SECONDS, shield=True):
                await store.workers.end(worker.worker_id, EndedHow.REFUSED)
        raise


async def _live(shared: Shared, options: RunOptions) -> None:
    """Build the gateway, and run it with what belongs beside it until it has ended."""
    config, worker = shared.config, shared.worker
    _make_workdir(config.gateway.workdir)
    built = build(shared, lambda: _begin_stop(options), options.notifier.extend)
    opening = built.gateway.intake.opening
    home, place = str(config.home), options.surroundings.place
    log.info("gateway_started", worker=worker.worker_id, home=home, place=place)
    async with create_task_group() as tasks:
        await tasks.start(_leave_at_signals, shared.drain, shared.why_not_restart)
        tasks.start_soon(_tidings(shared, built, options.notifier).keep_telling)
        for channel in built.web:
            tasks.start_soon(_announce, channel, options, opening)
        tasks.start_soon(_say_ready, opening, options.notifier)
        parcels = Parcels(store=shared.store, clock=shared.clock, home=config.home)
        tasks.start_soon(parcels.keep_sweeping)
        tasks.start_soon(_close_home, config)
        tasks.start_soon(_inside_folders(shared).keep_sweeping)
        tasks.start_soon(_forgetting(shared).keep_forgetting)
        tasks.start_soon(_minutes(shared).keep_noting)
        indexing = Indexing(search=shared.store.search, wakeups=shared.wakeups)
        tasks.start_soon(indexing.keep_indexing)
        tasks.start_soon(erasing_of(config, shared.store).keep_erasing, shared.wakeups)
        # What is not needed to accept messages comes after it.
        before = [opening.is_known] if built.web else []
        tasks.start_soon(keep_connected, built.servers, before)
        tasks.start_soon(load_plugins, built.plugins, [*before, shared.has_recovered])
        await built.gateway.run()
        tasks.cancel_scope.cancel()


async def _close_home(config: Config) -> None:
    """What an earlier version left open to others is closed, beside the work."""
    folders = ("processes", "files", "backups", "quarantine")
    for folder in folders:
        close = partial(close_home, config.home / folder, but=[config.gateway.workdir])
        count = await to_thread.run_sync(close)
        if count:
            log.info("home_closed", folder=folder, count=count)
    # The files in there are the agent's own, with the modes that it gave them.
    kept = config.home / KEPT_NAME
    for each in (kept, kept / "home", kept / "tmp"):
        await to_thread.run_sync(close_files, each)


def _inside_folders(shared: Shared) -> InsideFolders:
    config = shared.config
    return InsideFolders(
        store=shared.store,
        clock=shared.clock,
        folder=config.home / KEPT_NAME / "tmp",
        servers=frozenset(f"mcp-{server.name}" for server in config.enabled_mcp),
        groups=ControlGroups() if shared.enclosure is None else shared.enclosure.groups,
        keep_ms=config.limits.inside_tmp_seconds * 1_000,
        sweep_seconds=config.limits.process_sweep_seconds,
    )


async def _open(
    config: Config,
    options: RunOptions,
    world: BootConfig,
    clock: SystemClock,
    wakeups: LocalWakeups,
) -> GatewayStore:
    return await open_configured(
        config,
        world=world,
        clock=clock,
        wakeups=wakeups,
        options=StoreOptions(
            lock_wait_seconds=options.lock_wait_seconds,
            accepts_loss=options.accepts_loss,
            keeps_reserve=True,
            hold_asked_by=_asked_by(options, clock) if options.holds_outbox else "",
            crash_at=os.environ.get(faults.VARIABLE, ""),
            waiting_max=config.limits.inbox_waiting_max,
            question_age_ms_max=config.limits.question_age_ms,
            notify=Notify(config.tools.terminal.notify),
            report_limits=report_limits(config),
            pairing=pairing_limits(config),
            backlog=backlog_limits(config),
            zone_named=zones_of(config),
            zone_rules=zone_rules(config),
            goal_limits=goal_limits(config),
            schedules_max=config.limits.schedules_per_member_max,
        ),
        on_failure=lambda failure: log.error("store_failed", error=str(failure)),
        on_trouble=lambda trouble: log.warning("store_waits", reason=trouble),
    )


def _say_boundary(config: Config) -> None:
    """Said at every start: what keeps the agent inside, or that nothing does."""
    words = boundary_words(config)
    if is_held(config):
        log.info("boundary_holds", boundary=words, limits=limit_words(config))
    else:
        log.warning("boundary_missing", boundary=words)


def _make_workdir(workdir: Path) -> None:
    """Where commands run; without it they fail one by one, and say so."""
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.warning("workdir_missing", workdir=str(workdir), error=str(error))


def _begin_stop(options: RunOptions) -> None:
    options.notifier.stopping()
    options.notifier.status("stopping")
    options.on_stopping()


def _tidings(shared: Shared, built: Built, notifier: Notifier) -> StatusNotifier:
    return StatusNotifier(notifier=notifier, store=shared.store, health=built.health)


def _forgetting(shared: Shared) -> Forgetting:
    retention = shared.config.retention
    return Forgetting(
        store=shared.store,
        clock=shared.clock,
        worker_id=shared.worker.worker_id,
        journal_days=retention.journal_days,
        deliveries_days=retention.deliveries_days,
        occasions_days=shared.config.limits.occasions_kept_days,
    )


async def _say_ready(opening: Opening, notifier: Notifier) -> None:
    await opening.is_accepting.wait()
    notifier.ready()


async def _announce(channel: WebChannel, options: RunOptions, opening: Opening) -> None:
    port = await channel.listening()
    opening.accept()
    options.notifier.ready()
    options.announce(channel.address or "", channel.login_link)
    log.info("web_listening", address=channel.address, port=port)


async def _leave_at_signals(
    drain: Drain, why_not_restart: Callable[[], Awaitable[str]], *, task_status: TaskStatus[None]
) -> None:
    """The first signal asks for a stop, the second for one that waits for nothing. SIGHUP asks for
    a restart with the configuration as it is now, if that can be used."""
    with open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        task_status.started()
        async for number in signals:
            if number == signal.SIGHUP:
                _reload(drain, await why_not_restart())
                continue
            log.info("signal_received", signal=number.name)
            if drain.asked.is_set():
                drain.hurry()
            else:
                drain.ask(Leave.STOP)


def _reload(drain: Drain, wrong: str) -> None:
    """Start again with the new configuration; with a wrong one, go on with the old."""
    if wrong:
        log.error("reload_refused", reason=wrong)
        return
    log.info("reload_begun", how="drain, then start again with the configuration as it is now")
    drain.ask(Leave.RESTART)


def _asked_by(options: RunOptions, clock: SystemClock) -> str:
    """The process that was told to hold owed deliveries. It stays the same when a parent starts us
    again, or when we start ourselves again: later deliveries are not held."""
    pid = os.getppid() if options.is_supervised else os.getpid()
    birth = birth_of(pid)
    return f"{pid}/{birth}" if birth != UNKNOWN else f"{pid}/{clock.now_ms()}"


def _minutes(shared: Shared) -> NoteMinutes:
    return NoteMinutes(
        minutes=shared.store.minutes,
        meter=shared.meter,
        database=shared.config.home / "koboshi.db",
        model=shared.config.model.name,
    )
