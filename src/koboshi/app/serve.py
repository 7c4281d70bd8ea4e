"""A gateway from start to stop."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog
from anyio import create_task_group, move_on_after, open_signal_receiver, to_thread
from anyio.abc import TaskStatus

from koboshi.app.birth import UNKNOWN, birth_of
from koboshi.app.boot_config import boot_config_of, opened_models
from koboshi.app.boundary import (
    KEPT_NAME,
    boundary_words,
    enclosure_of,
    is_held,
    limit_words,
)
from koboshi.app.builders.control import (
    backlog_limits,
    child_limits,
    erasing_of,
    goal_limits,
    memory_limits,
    pairing_limits,
    report_limits,
)
from koboshi.app.builders.gateway import Built, build
from koboshi.app.builders.shared import Shared
from koboshi.app.garbage import collect_seldom
from koboshi.app.moving_in.placing import CONFIG, finish_moves
from koboshi.app.plugins import load_plugins
from koboshi.app.prices import budget_limits, prices_of
from koboshi.app.run_options import RunOptions as RunOptions
from koboshi.app.servers import keep_connected
from koboshi.app.sharing import shared_by
from koboshi.app.start_check import StartRefused, usable_models, workdir_warnings
from koboshi.app.starting import started
from koboshi.app.stores import GatewayStore, open_configured
from koboshi.app.trial import (
    REHEARSED,
    confirm_when_built,
    go_back,
    refusals,
    rehearsed_config,
)
from koboshi.app.update_start import GoingBack, OnTrial
from koboshi.app.zone import zone_rules, zones_of
from koboshi.boundary.control_groups import ControlGroups
from koboshi.channels.web.channel import WebChannel
from koboshi.clock import SystemClock, boottime
from koboshi.config import Config
from koboshi.config.home_modes import close_files, close_home
from koboshi.config.likeness import config_fingerprint
from koboshi.domain.burial import TRUST_PART
from koboshi.domain.errors import StoreFailed, Unusable, is_or_holds
from koboshi.domain.phrases import members_now
from koboshi.domain.recovery import BootConfig
from koboshi.domain.shutdown import Leave
from koboshi.domain.watch import Notify
from koboshi.domain.worker import EndedHow, Worker
from koboshi.ports.model import Model
from koboshi.processes.inside_folders import InsideFolders
from koboshi.processes.installed import INSTALLED
from koboshi.runtime.chain_look import ChainLook
from koboshi.runtime.drain import Drain
from koboshi.runtime.indexing import Indexing
from koboshi.runtime.minutes import NoteMinutes
from koboshi.runtime.notify import Notifier
from koboshi.runtime.opening import Opening
from koboshi.runtime.outgoing_files import Parcels
from koboshi.runtime.retention import Forgetting
from koboshi.runtime.status_notifier import StatusNotifier
from koboshi.runtime.trust import Trust
from koboshi.runtime.wakeups import LocalWakeups
from koboshi.stores import faults
from koboshi.stores.options import StoreOptions

log = structlog.get_logger()

BOOKED_SECONDS = 5.0
ROOT_REMEDY = (
    "as root, every command of the agent has the rights of root; give it a user of its own: "
    "koboshi service install --system --run-as USER"
)


async def serve(config: Config, options: RunOptions) -> bool:
    """Run a gateway on the configuration until it is asked to stop. Returns whether it is to be
    started again.

    Raises StoreRefused, Unusable or StoreFailed, alone or inside exception groups.
    """
    # An upgrade while we run must not mix its code with ours.
    with INSTALLED.guarded():
        async with opened_models(usable_models(config)) as models:
            return await _serve(config, options, models)


async def rehearse(config: Config, folder: Path) -> None:
    """Open the copy of a database in `folder`, bring it to our schema, and build a gateway on it
    that never runs. Raises StoreRefused, StoreFailed and Unusable."""
    if wrong := refusals(config):
        raise StartRefused(wrong, missing_keys=())
    config, clock, wakeups = rehearsed_config(config, folder), SystemClock(), LocalWakeups()
    options = RunOptions(lock_wait_seconds=0)
    store = await _open(config, options, boot_config_of(config), clock, wakeups)
    try:
        async with opened_models(usable_models(config)) as models:
            shared = shared_by(
                config, options, store, models, clock, wakeups, Trust(), None, REHEARSED
            )
            _built(shared, options)
    finally:
        await store.close()


async def _serve(config: Config, options: RunOptions, models: Mapping[str, Model]) -> bool:
    clock, wakeups, world = SystemClock(), LocalWakeups(), boot_config_of(config)
    options.notifier.status("opening the store")
    if isinstance(options.update, GoingBack):
        await go_back(config, options.update, options.lock_wait_seconds)
    store = await _open(config, options, world, clock, wakeups)
    for warning in (*config.warnings, *workdir_warnings(config), *store.warnings):
        log.warning("startup_warning", warning=warning)
    if os.geteuid() == 0:
        log.warning("runs_as_root", remedy=ROOT_REMEDY)
    _say_boundary(config)
    try:
        if CONFIG in await finish_moves(config.home, store):
            log.warning("configuration_moved_in", how="start again with it")
            return True
        trust = _trust(config, store)
        enclosure = await to_thread.run_sync(enclosure_of, config, os.environ)
        share = partial(shared_by, config, options, store, models, clock, wakeups, trust, enclosure)
        if isinstance(options.update, OnTrial):
            await confirm_when_built(lambda worker: _built(share(worker), options), options.update)
        begun = trust.now()
        worker = await started(config, store, clock)
        trust.renew(begun)
        store.listen()
        if members := await store.people.tell_of_roles():
            log.warning("members_now", reason=members_now(members))
        shared = share(worker)
        async with _refusal_booked(store, worker):
            await _live(shared, options)
        return shared.drain.how is Leave.RESTART
    finally:
        await store.close()


def _built(shared: Shared, options: RunOptions) -> Built:
    return build(shared, lambda: _begin_stop(options), options.notifier.extend)


def _trust(config: Config, store: GatewayStore) -> Trust:
    if not store.is_shared:
        return Trust()
    return Trust(seconds=config.store.lease_seconds * TRUST_PART, now=boottime)


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
    built = _built(shared, options)
    collect_seldom()
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
        if config.chain or budget_limits(config).is_set:
            look = _chain_look(shared)
            shared.neighbours.chain = look.told
            tasks.start_soon(look.keep_looking)
        indexing = Indexing(search=shared.store.search, wakeups=shared.wakeups)
        tasks.start_soon(indexing.keep_indexing)
        tasks.start_soon(erasing_of(config, shared.store).keep_erasing, shared.wakeups)
        tasks.start_soon(shared.memory_files.keep_writing, shared.wakeups)
        # What is not needed to accept messages comes after it.
        before = [opening.is_known] if built.web else []
        tasks.start_soon(keep_connected, built.servers, before)
        tasks.start_soon(load_plugins, built.plugins, [*before, shared.has_recovered])
        await built.gateway.run()
        tasks.cancel_scope.cancel()


def _chain_look(shared: Shared) -> ChainLook:
    config = shared.config
    return ChainLook(
        models=shared.store.models,
        budget=shared.store.budget,
        clock=shared.clock,
        names=tuple(model.called for model in config.links),
        has_budget=budget_limits(config).is_set,
    )


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
            child_limits=child_limits(config),
            memory_limits=memory_limits(config),
            schedules_max=config.limits.schedules_per_member_max,
            node=config.gateway.node or socket.gethostname(),
            fingerprint=config_fingerprint(config),
            lease_seconds=config.store.lease_seconds,
            is_workdir_shared=config.gateway.workdir_shared,
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
    await channel.share_codes()
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
        prices=prices_of(shared.config),
    )
