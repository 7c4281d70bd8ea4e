"""`koboshi run`: the gateway in the foreground, and the parent that starts it again."""

import errno
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from koboshi.cli.files_left import too_few_files
from koboshi.cli.options import (
    OK,
    RESTART,
    STORAGE_FAILED,
    WRONG_SETUP,
    CommandFailure,
    home_options,
    leave,
)
from koboshi.cli.supervise import command_again, stop_without_parent, supervise_gateway
from koboshi.config import Config, ConfigError, load, prepare_home, secrets_of
from koboshi.config.secret_places import secret_variables_of
from koboshi.domain.errors import (
    Buried,
    HomeCopied,
    HomeHeld,
    KoboshiError,
    StoreFailed,
    StoreRefused,
    Unusable,
)
from koboshi.domain.resource_exhaustion import shortage_in

if TYPE_CHECKING:
    from koboshi.app.serve import RunOptions

LOCK_WAIT_SECONDS_MAX = 24 * 3_600.0
STOP_MARGIN_SECONDS = 15.0
"""What a stop may take beyond the drain before the parent kills the gateway."""
OWN_MARGIN_SECONDS = 10.0
"""What it may take before the gateway ends itself."""

_FOR_A_PERSON = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO}
)
"""Errors of files that no restart mends."""


def _seconds(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if not 0 <= value <= LOCK_WAIT_SECONDS_MAX:
        raise click.BadParameter(f"must be a number from 0 to {LOCK_WAIT_SECONDS_MAX:g}")
    return value


@click.command()
@home_options
@click.option("--supervise", is_flag=True, help="Start it again whenever it dies.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="NUMBER",
    help="Port of the web channel, instead of the configured one; 0 is any free port.",
)
@click.option(
    "--lock-wait",
    type=float,
    callback=_seconds,
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another gateway to leave the home.",
)
@click.option(
    "--accept-data-loss",
    "accepts_loss",
    is_flag=True,
    help="If the database is damaged and there is no backup: set it aside and start empty.",
)
@click.option(
    "--hold-outbox",
    "holds_outbox",
    is_flag=True,
    help="Hold deliveries that are waiting now until `koboshi outbox release`: for a home that was "
    "restored whole.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
def run(
    home: Path | None,
    config_file: Path | None,
    supervise: bool,
    port: int | None,
    lock_wait: float,
    accepts_loss: bool,
    holds_outbox: bool,
    log_level: str,
) -> None:
    """Run the gateway in the foreground until it is told to stop."""
    _stop_at_once_when_asked()
    too_few = too_few_files()
    if too_few:
        leave(WRONG_SETUP, too_few)
    try:
        config = load(home, config_file, os.environ, web_port=port)
        prepare_home(config.home)
    except ConfigError as error:
        leave(WRONG_SETUP, str(error))
    if supervise and "NOTIFY_SOCKET" in os.environ:
        # It listens to one process only, and would not hear a child of that one.
        click.echo("koboshi: a service manager is here; --supervise is left to it", err=True)
    elif supervise:
        # Each child gets the variables anew, from a copy that no other process sees.
        _keep_to_ourselves(secret_variables_of(config, os.environ), removes=False)
        sys.exit(supervise_gateway(config.gateway.drain_seconds + STOP_MARGIN_SECONDS))
    secrets = {name: os.environ[name] for name in secret_variables_of(config, os.environ)}
    wrong = partial(_wrong_configuration, home, config_file, port, secrets)
    _keep_to_ourselves(secrets, removes=True)
    sys.exit(_serve(config, lock_wait, accepts_loss, holds_outbox, log_level, wrong, secrets))


def _keep_to_ourselves(variables: Collection[str], *, removes: bool) -> None:
    """Close this process, and what it was given, to others of its user."""
    from koboshi.app.privacy import make_undumpable, remove_variables, wipe_variables

    make_undumpable()
    if removes:
        remove_variables(variables, os.environ)
    else:
        wipe_variables(variables)


def _wrong_configuration(
    home: Path | None, config_file: Path | None, port: int | None, secrets: Mapping[str, str]
) -> str:
    """Why a start on the configuration as it is now would be refused; empty if it would not."""
    from koboshi.app.start_check import verdict_on

    try:
        config = load(home, config_file, {**os.environ, **secrets}, web_port=port)
    except ConfigError as error:
        return str(error)
    return "\n".join(verdict_on(config, ours=frozenset({os.getpid()})).refusals)


def _bound_the_stop(seconds: float) -> None:
    """A thread outside the event loop ends a stop that hangs, on a disk for example. Nothing that a
    stop does is needed by the next start."""

    def end() -> None:
        faulthandler.dump_traceback()
        os._exit(STORAGE_FAILED)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _serve(
    config: Config,
    lock_wait: float,
    accepts_loss: bool,
    holds_outbox: bool,
    log_level: str,
    wrong_configuration: Callable[[], str],
    secrets: Mapping[str, str],
) -> int:
    """Serve, and turn what ends it into an exit code. An unforeseen error is raised."""
    _say_where_it_hangs()
    from koboshi.cli.update.starting import update_part

    # Both are asked before their variables are taken out of the environment.
    try:
        update = update_part(os.environ, config.home)
    except CommandFailure as failure:
        leave(failure.code, failure.message)
    has_parent = stop_without_parent()
    has_manager = is_serviced(os.environ)
    options = replace(
        _options(config, log_level),
        lock_wait_seconds=lock_wait,
        accepts_loss=accepts_loss,
        holds_outbox=holds_outbox,
        wrong_configuration=wrong_configuration,
        is_supervised=has_parent,
        update=update,
    )
    import anyio

    from koboshi.app.serve import serve

    try:
        is_again = anyio.run(serve, config, options, backend_options={"use_uvloop": True})
    except (KoboshiError, OSError, RuntimeError, ExceptionGroup) as error:
        code = _told(error, config.home, is_serviced=has_manager)
        if code is None:
            raise
        return code
    if not is_again:
        return OK
    if not has_parent and not has_manager:
        _start_again({**os.environ, **secrets, **options.listeners.for_next()})
    return RESTART


def _options(config: Config, log_level: str) -> "RunOptions":
    """What the surroundings say about how to run; the log is set up on the way."""
    # Others would load them where they are installed: structlog for coloured tracebacks that we
    # never print (a sixth of a start) and for another kind of thread, starlette for forms.
    with hidden("rich", "greenlet", "python_multipart", "multipart"):
        from koboshi import logs
        from koboshi.app.serve import RunOptions
    from koboshi.channels.common.held_listeners import taken_listeners
    from koboshi.runtime.host import look_around, signs_here
    from koboshi.runtime.notify import Notifier

    surroundings = look_around(signs_here(os.environ, os.getpid(), is_terminal=_is_terminal()))
    # Takes its variables out of the environment, so it comes after all that read them.
    notifier = Notifier.taken_from(os.environ, os.getpid())
    listeners = taken_listeners(os.environ, os.getpid())
    if notifier.is_heard:
        listeners.deposit = notifier.keep_socket
    logs.configure(log_level, _wants_json(os.environ), secrets_of(config))
    sys.excepthook = _log_and_end
    stop_seconds = surroundings.drain_seconds(config.gateway.drain_seconds) + OWN_MARGIN_SECONDS
    return RunOptions(
        lock_wait_seconds=0,
        announce=_announce,
        on_stopping=lambda: _bound_the_stop(stop_seconds),
        notifier=notifier,
        surroundings=surroundings,
        listeners=listeners,
    )


def _wants_json(environ: Mapping[str, str]) -> bool | None:
    """How the log is written; None where it depends on who reads it."""
    return {"json": True, "text": False}.get(environ.get("KOBOSHI_LOG", ""))


def _say_where_it_hangs() -> None:
    """On SIGQUIT; and on SIGABRT, by which the watchdog of a service manager ends us.

    The stacks are read between two instructions of Python. `faulthandler.register` reads them
    inside the signal, while other threads change them: that ended one gateway in ten thousand.
    """
    signal.signal(signal.SIGQUIT, lambda _number, _frame: faulthandler.dump_traceback())
    faulthandler.enable()


def _told(error: BaseException, home: Path, *, is_serviced: bool) -> int | None:
    """The exit code for what ended the gateway, after it was said; None if it is a bug."""
    import structlog

    ending = ending_of(error, home, is_serviced=is_serviced)
    if ending is None:
        return None
    if has_bug(error, home):
        structlog.get_logger().critical("gateway_broke", exc_info=error)
    code, words = ending
    click.echo(f"koboshi: {words}", err=True)
    return code


def _start_again(environ: Mapping[str, str]) -> None:
    """Where no supervisor would start us again, become a new gateway in this very process."""
    sys.stdout.flush()
    command = command_again(sys.orig_argv)
    os.execve(command[0], command, environ)


def ending_of(error: BaseException, home: Path, *, is_serviced: bool) -> tuple[int, str] | None:
    """The exit code for what ended the gateway, and the words for it; None if it is a bug.

    Where several errors came together, a failed store counts before everything else, and a bug
    before a wrong set-up: after those a restart may help.
    """
    endings = [_ending_of_one(each, home, is_serviced=is_serviced) for each in leaves_of(error)]
    known = [ending for ending in endings if ending is not None]
    failed = [ending for ending in known if ending[0] == STORAGE_FAILED]
    if failed:
        return failed[0]
    return None if has_bug(error, home) else known[0]


def has_bug(error: BaseException, home: Path) -> bool:
    """Whether an unforeseen error is among them."""
    endings = (_ending_of_one(each, home, is_serviced=False) for each in leaves_of(error))
    return any(ending is None for ending in endings)


def _ending_of_one(
    error: BaseException, home: Path, *, is_serviced: bool
) -> tuple[int, str] | None:
    missing = shortage_in(error)
    match error:
        case HomeCopied():
            return WRONG_SETUP, str(error)
        case Buried():
            return RESTART, f"{error}; start me again"
        case StoreFailed():
            return STORAGE_FAILED, f"{error}; start me again"
        case _ if missing is not None:
            return STORAGE_FAILED, f"{missing}; start me again"
        case HomeHeld():
            return RESTART if is_serviced else WRONG_SETUP, str(error)
        case StoreRefused() | Unusable():
            return WRONG_SETUP, str(error)
        case OSError(filename=str() | Path() as name) if Path(name).is_relative_to(home):
            said = (error.strerror or str(error)).lower()
            if error.errno in _FOR_A_PERSON:
                return WRONG_SETUP, f"{name} cannot be used: {said}"
            return STORAGE_FAILED, f"{name}: {said}; start me again"
        case _:
            return None


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors inside groups of groups."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from leaves_of(each)


def is_serviced(environ: Mapping[str, str]) -> bool:
    """Whether a service manager started us, and will again. A terminal within a desktop session
    may have inherited the variables."""
    has_manager = "INVOCATION_ID" in environ or "NOTIFY_SOCKET" in environ
    return has_manager and not _is_terminal()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _announce(address: str, make_link: Callable[[], str | None]) -> None:
    """Say where we are; stdout may be closed by now. A link lets in its reader, so it is
    made for a terminal only, and never for what ends up in a log: `koboshi open` gives one
    there."""
    words = f"koboshi is at {address} (talk: koboshi chat; open in a browser: koboshi open)"
    is_read_by_person = sys.stdout is not None and sys.stdout.isatty()
    link = make_link() if is_read_by_person else None
    if link is not None:
        words += f"\nOpen this in a browser, once: {link}"
    try:
        click.echo(words)
    except OSError:
        # What is still in the buffer must not fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())


def _stop_at_once_when_asked() -> None:
    """Until the gateway serves and has its own way to stop, there is nothing to say goodbye to."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: os._exit(OK))


def _log_and_end(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """An unforeseen error goes into the log, with all that is known; Python ends us with 1."""
    import structlog

    structlog.get_logger().critical("gateway_broke", exc_info=(kind, error, trace))


@contextmanager
def hidden(*modules: str) -> Iterator[None]:
    """Importing one of the modules fails in here, as if it were not installed."""
    absent = [each for each in modules if each not in sys.modules]
    for each in absent:
        sys.modules[each] = None  # type: ignore[assignment]  # what the import system calls absent
    try:
        yield
    finally:
        for each in absent:
            del sys.modules[each]
