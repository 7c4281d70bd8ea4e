"""What the objects of one gateway share, for its worker."""

import os
from collections.abc import Mapping
from functools import partial

from anyio import Event, to_thread

from koboshi.app.boot_config import environment_of_commands
from koboshi.app.boundary import boundary_words, guard_of, is_held
from koboshi.app.builders.control import PROCESSES_NAME
from koboshi.app.builders.parsers import parsers_of
from koboshi.app.builders.shared import Shared
from koboshi.app.run_options import RunOptions
from koboshi.app.stores import GatewayStore
from koboshi.boundary.enclosure import Enclosure
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.neighbours import Neighbours
from koboshi.domain.memory import MEMORY_FOLDER
from koboshi.domain.worker import Worker
from koboshi.ports.clock import Clock
from koboshi.ports.memory import FileFate
from koboshi.ports.model import Model
from koboshi.processes.runners import LocalRunners
from koboshi.runtime.drain import Drain
from koboshi.runtime.memory_files import MemoryFiles
from koboshi.runtime.meter import Meter, labelled
from koboshi.runtime.trust import Trust
from koboshi.runtime.wakeups import LocalWakeups


def shared_by(
    config: Config,
    options: RunOptions,
    store: GatewayStore,
    models: Mapping[str, Model],
    clock: SystemClock,
    wakeups: LocalWakeups,
    trust: Trust,
    enclosure: Enclosure | None,
    worker: Worker,
) -> Shared:
    """Nothing is begun by it."""
    seconds = options.surroundings.drain_seconds(config.gateway.drain_seconds)
    meter = Meter()
    return Shared(
        config=config,
        store=store,
        models=models,
        worker=worker,
        drain=Drain(wakeups=wakeups, seconds=seconds),
        clock=clock,
        wakeups=wakeups,
        has_recovered=Event(),
        runners=LocalRunners(
            config.home / PROCESSES_NAME, guard=guard_of(config), until_trusted=trust.wait
        ),
        enclosure=enclosure,
        neighbours=Neighbours(clock=clock, boundary=(is_held(config), boundary_words(config))),
        trust=trust,
        parsers=parsers_of(config, environment_of_commands(os.environ)),
        meter=meter,
        memory_files=_memory_files(config, store, clock, meter),
        listeners=options.listeners,
        is_supervised=options.is_supervised,
        why_not_restart=partial(to_thread.run_sync, options.wrong_configuration),
    )


def _memory_files(config: Config, store: GatewayStore, clock: Clock, meter: Meter) -> MemoryFiles:
    def count(fate: FileFate) -> None:
        meter.count("koboshi_memory_files_read_total", labelled(fate=fate))

    folder = config.home / MEMORY_FOLDER
    return MemoryFiles(memories=store.memory, folder=folder, clock=clock, on_read=count)
