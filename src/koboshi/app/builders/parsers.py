"""The parsers of a gateway: what stands around each of them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace

from koboshi.app.boundary import KEPT_NAME, hidden_paths
from koboshi.boundary.enclosure import Enclosure, Exceptions
from koboshi.boundary.probe import REMEDY, probe
from koboshi.boundary.program_files import files_of
from koboshi.config import Config
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.parsers import ParserKind
from koboshi.ports.runners import UNCONFINED
from koboshi.processes.parsers.locked import LockedParsers, ParserStart, program_of

MEMORY_BYTES_MAX = 1 << 30
SPEECH_SECONDS_MAX = 600.0
OWNER = "parsers"


def parsers_of(
    config: Config, environment: Mapping[str, str], python: str = sys.executable
) -> LockedParsers:
    """Nothing is looked at before the first file is parsed."""

    def prepare(kind: ParserKind) -> ParserStart:
        return _start(config, environment, kind, python)

    return LockedParsers(prepare=prepare, python=python)


def _start(
    config: Config, environment: Mapping[str, str], kind: ParserKind, python: str
) -> ParserStart:
    sandbox = Sandbox.WORKSPACE if kind is ParserKind.SEARCH else Sandbox.LOCKED
    seen = probe()
    chosen = seen.chosen_for(sandbox)
    if chosen is Boundary.NONE:
        if Sandbox(config.tools.sandbox) is Sandbox.HOST:  # its owner has decided to have none
            confinement = replace(UNCONFINED, memory_bytes_max=_memory_bytes_max(config, kind))
            return ParserStart(
                confinement=confinement, environment=environment, seconds_max=_seconds_max(kind)
            )
        reasons = seen.reasons_for(sandbox)
        blocked = f"no sandbox holds for parsers on this machine ({reasons}). Remedy: {REMEDY}"
        return ParserStart(confinement=UNCONFINED, blocked=blocked)
    enclosure = Enclosure(
        sandbox=sandbox,
        boundary=chosen,
        workdirs=(),
        kept=str(config.home / KEPT_NAME),
        hidden=hidden_paths(config),
        exceptions=Exceptions(
            readable=(*_own_files(environment, kind, python), *_model(config, kind))
        ),
        memory_bytes_max=_memory_bytes_max(config, kind),
    )
    view = enclosure.view_of(OWNER, owner=OWNER)
    assert view is not None, "there is a boundary"
    try:
        started = enclosure.start(view, view.home, environment)
    except OSError as error:
        blocked = f"the folder of the parsers cannot be made: {error.strerror}"
        return ParserStart(confinement=UNCONFINED, blocked=blocked)
    return ParserStart(
        confinement=started.confinement,
        environment=started.environment,
        workdir=view.home,
        seconds_max=_seconds_max(kind),
    )


def _memory_bytes_max(config: Config, kind: ParserKind) -> int:
    return config.voice.memory_mb << 20 if kind is ParserKind.SPEECH else MEMORY_BYTES_MAX


def _seconds_max(kind: ParserKind) -> float | None:
    return SPEECH_SECONDS_MAX if kind is ParserKind.SPEECH else None


def _model(config: Config, kind: ParserKind) -> tuple[str, ...]:
    """The folder of the model that writes down speech."""
    folder = config.voice.folder
    return (str(folder),) if folder is not None and kind is ParserKind.SPEECH else ()


def _own_files(environment: Mapping[str, str], kind: ParserKind, python: str) -> tuple[str, ...]:
    """The interpreter with its libraries, and the program."""
    return files_of(
        python,
        (str(program_of(kind)),),
        environment=environment,
        workdir="/",
        home=os.path.expanduser("~"),
    )
