"""Asking the owner of a home: the gateway if one runs, else this process for a moment."""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from koboshi.cli.options import WRONG_SETUP, leave
from koboshi.config import Config, ConfigError, load

SOCKET_NAME = "control.sock"
ANSWER_SECONDS = 15.0
TRIES = 20


def loaded(home: Path | None, config_file: Path | None) -> Config:
    """The configuration; a wrong one ends the command."""
    try:
        return load(home, config_file, os.environ)
    except ConfigError as error:
        leave(WRONG_SETUP, str(error))


def ask_owner(config: Config, request: Mapping[str, object]) -> dict[str, object]:
    """The answer of whoever owns the home. A home that is not there has nothing to tell."""
    if not (config.home / "koboshi.db").exists():
        leave(1, f"there is no gateway's home at {config.home}; `koboshi run` makes one")
    return _from_gateway(config.home, request) or _from_home(config, request)


def _from_gateway(home: Path, request: Mapping[str, object]) -> dict[str, object] | None:
    """The gateway's answer; None if none runs."""
    try:
        with short_path(home / SOCKET_NAME) as path, socket.socket(socket.AF_UNIX) as link:
            link.settimeout(ANSWER_SECONDS)
            link.connect(path)
            link.sendall(json.dumps(dict(request)).encode() + b"\n")
            with link.makefile("rb") as lines:
                reply = lines.readline()
        answer = json.loads(reply)
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _from_home(config: Config, request: Mapping[str, object]) -> dict[str, object]:
    import anyio

    from koboshi.app import answer_from_home
    from koboshi.domain.errors import HomeHeld, StoreRefused

    for _ in range(TRIES):
        try:
            return dict(anyio.run(answer_from_home, config, request))
        except HomeHeld:
            # A gateway that has just started owns the home and may serve its socket by now.
            answer = _from_gateway(config.home, request)
            if answer is not None:
                return answer
        except StoreRefused as error:
            leave(WRONG_SETUP, str(error))
    return leave(1, f"the gateway that holds {config.home} does not answer")


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name of the socket that the kernel takes, however long the home's name is."""
    if len(os.fsencode(path)) <= 100 or not Path("/proc/self/fd").exists():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
