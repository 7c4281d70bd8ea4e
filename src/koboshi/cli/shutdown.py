"""`koboshi stop`, `koboshi restart`, `koboshi drain`: ask the gateway that runs to end."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from koboshi.cli.ask_owner import ask_gateway, ask_owner, loaded, read_answer
from koboshi.cli.holders import is_held
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    counted,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.replies import GatewayEnding
from koboshi.control.requests import (
    DrainGateway,
    EndGateway,
    GetStatus,
    RestartGateway,
    StopGateway,
)

LOOK_SECONDS = 0.1
STOP_MARGIN_SECONDS = 60.0
"""What a stop may take beyond the drain before we stop waiting for it."""


_WAYS: Mapping[str, type[EndGateway]] = {
    "stop": StopGateway,
    "restart": RestartGateway,
    "drain": DrainGateway,
}


def _no_wait(command: Callable[..., None]) -> Callable[..., None]:
    words = "Return at once, without waiting for it."
    return click.option("--no-wait", is_flag=True, help=words)(command)


@click.command()
@_no_wait
@home_options
@json_option
def stop(no_wait: bool, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Stop the gateway. What runs may finish its step; the rest goes on at the next start."""
    _leave("stop", home, config_file, no_wait=no_wait, as_json=as_json)


@click.command()
@_no_wait
@home_options
@json_option
def restart(no_wait: bool, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Stop the gateway and start it again. Interrupted turns go on."""
    _leave("restart", home, config_file, no_wait=no_wait, as_json=as_json)


@click.command()
@_no_wait
@home_options
@json_option
def drain(no_wait: bool, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Begin nothing new, wait for what runs however long it takes, then stop."""
    _leave("drain", home, config_file, no_wait=no_wait, as_json=as_json)


def _leave(
    how: str, home: Path | None, config_file: Path | None, *, no_wait: bool, as_json: bool
) -> None:
    with failures_told(as_json):
        config = loaded(home, config_file)
        answer = ask_owner(config, _WAYS[how]())
        said = read_answer(answer, GatewayEnding)
        if not as_json:
            turns = counted(said.running_turns, "turn")
            click.echo(f"asked pid {said.pid} to {how}; it works on {turns}")
        if not no_wait:
            _wait(config, how, said.pid)
        if as_json:
            show_json(answer)
        elif not no_wait:
            click.echo("it is back" if how == "restart" else "it has stopped")


def _wait(config: Config, how: str, pid: int) -> None:
    """Until it has happened: it has given its home back, or another one is there.

    It answers no more some time before it gives its home back, and a `koboshi restore` right after
    a `koboshi stop` needs the home.
    """
    clock = SystemClock()
    deadline = clock.monotonic() + config.gateway.drain_seconds + STOP_MARGIN_SECONDS
    boot, never = _boot(config), threading.Event()
    while how == "drain" or clock.monotonic() < deadline:
        now = _boot(config)
        if now is None and how != "restart" and not is_held(config.home):
            return
        if how == "restart" and now is not None and now != boot:
            return
        never.wait(LOOK_SECONDS)
    words = f"pid {pid} has not done so yet; its log may say why"
    raise CommandFailure(FAILED, "no-answer", words)


def _boot(config: Config) -> object:
    """The boot of the gateway that runs; None if none does."""
    answer = ask_gateway(config.home, GetStatus())
    worker = None if answer is None else answer.get("worker")
    return worker.get("worker_id") if isinstance(worker, dict) else None
