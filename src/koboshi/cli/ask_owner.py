"""Asking the owner of a home: the gateway if one runs, else this process for a moment."""

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from koboshi.cli.options import FAILED, STORAGE_FAILED, WRONG_SETUP, CommandFailure
from koboshi.config.home_paths import find_places
from koboshi.config.problems import ConfigError, escaped
from koboshi.control.key import KEY_FIELD, NO_KEY, shown_key
from koboshi.control.requests import ControlRequest

if TYPE_CHECKING:
    from koboshi.config import Config

Shape = TypeVar("Shape")

SOCKET_NAME = "control.sock"
DATABASE_NAME, ID_NAME = "koboshi.db", "home-id"
SOCKET_PATH_BYTES_MAX = 100
ANSWER_SECONDS = 15.0
OWN_SECONDS = 10.0
"""How long a gateway that holds the home may take until it serves its socket."""
TRY_EVERY_SECONDS = 0.1


def loaded(home: Path | None, config_file: Path | None, *, needs_secrets: bool = False) -> "Config":
    """The configuration. Raises CommandFailure if it is wrong."""
    from koboshi.config.loading import load

    try:
        return load(home, config_file, os.environ, needs_secrets=needs_secrets)
    except ConfigError as error:
        raise CommandFailure(WRONG_SETUP, "config", str(error)) from error


def ask_owner(config: "Config", request: ControlRequest) -> dict[str, object]:
    """The answer of the owner of the home.

    Raises CommandFailure where no owner can be asked (no home, no permission, a gateway that is
    stuck), and where the owner has no answer.
    """
    _check_home(config)
    return _answered(ask_gateway(config.home, request) or _ask_home(config, request))


@dataclass(frozen=True)
class Looked:
    """An answer, and the home that it is about."""

    home: Path
    answer: dict[str, object]


def look(home: Path | None, config_file: Path | None, request: ControlRequest) -> Looked:
    """The answer of the owner of the home, as quickly as can be. A gateway that runs is asked
    before the configuration is read: it has one, and the file may be wrong by now. Raises
    Failure."""
    try:
        place = find_places(home, config_file, os.environ).home
    except ConfigError as error:
        raise CommandFailure(WRONG_SETUP, "config", str(error)) from error
    answer = ask_gateway(place, request) if _has_socket(place) else None
    if answer is None:
        config = loaded(home, config_file)
        _check_home(config)
        answer = _ask_home(config, request)
    return Looked(home=place, answer=_answered(answer))


def _answered(answer: dict[str, object]) -> dict[str, object]:
    if answer.get("ok") is True:
        return answer
    raise refusal_of(answer)


def refusal_of(answer: Mapping[str, object]) -> CommandFailure:
    """The failure that an answer without an answer is."""
    match answer.get("error"):
        case {"type": str(kind), "message": str(message)}:
            code = WRONG_SETUP if kind == "config" else FAILED
            return CommandFailure(code, kind, "\n".join(map(escaped, message.splitlines())))
        case _:
            return unreadable()


def read_answer(answer: Mapping[str, object], shape: type[Shape]) -> Shape:
    """The answer as a value. Raises CommandFailure if the owner is of a version that says other
    things."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as error:
        raise unreadable() from error


def ask_gateway(
    home: Path, request: ControlRequest | Mapping[str, object]
) -> dict[str, object] | None:
    """The answer of the gateway that runs in the home; None if none does. A request may be given
    as the object that is sent.

    Raises CommandFailure if one is there and does not answer, or may not be asked.
    """
    answer = _ask_once(home, request)
    if answer is not None and _error_type(answer) == NO_KEY:
        # A gateway whose key file was damaged has written it again by now.
        answer = _ask_once(home, request)
    return answer


def _ask_once(
    home: Path, request: ControlRequest | Mapping[str, object]
) -> dict[str, object] | None:
    try:
        with short_path(home / SOCKET_NAME) as path, socket.socket(socket.AF_UNIX) as link:
            link.settimeout(ANSWER_SECONDS)
            link.connect(path)
            link.sendall(_line_of({KEY_FIELD: shown_key(home), **_object_of(request)}))
            with link.makefile("rb") as lines:
                reply = lines.readline()
    except (FileNotFoundError, ConnectionError):
        # Never served, left behind by a gateway that was killed, or gone while we asked.
        return None
    except (TimeoutError, BlockingIOError):
        words = f"the gateway in {home} does not answer; it may be stuck, its log may say why"
        raise CommandFailure(FAILED, "no-answer", words) from None
    except OSError as error:
        raise _unusable(home, error) from error
    # A line that was not finished is that of a gateway which died over it.
    return _decoded(reply) if reply.endswith(b"\n") else None


def _has_socket(home: Path) -> bool:
    """Whether a gateway may be asked here. Where that cannot be told, others say why."""
    try:
        return (home / SOCKET_NAME).exists()
    except OSError:
        return False


def _check_home(config: "Config") -> None:
    """Raises CommandFailure if there is no home to ask about."""
    home, sign = config.home, ID_NAME if config.store.url else DATABASE_NAME
    try:
        is_home, is_file = (home / sign).exists(), home.is_file()
    except OSError as error:
        raise _unusable(home, error) from error
    if is_file:
        raise CommandFailure(WRONG_SETUP, "home", f"the home {home} is a file, not a folder")
    if not is_home:
        words = f"no gateway has run in {home} yet; `koboshi run` makes it a home"
        raise CommandFailure(FAILED, "no-home", words)


def _decoded(reply: bytes) -> dict[str, object]:
    """The answer on the line."""
    try:
        answer = json.loads(reply)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise unreadable()
    return answer


def _ask_home(config: "Config", request: ControlRequest) -> dict[str, object]:
    """The answer of a home that no gateway serves. A process that holds the home is another
    command, or a gateway that will serve its socket soon."""
    from koboshi.app.home import answer_from_home
    from koboshi.clock import SystemClock
    from koboshi.domain.errors import HomeHeld

    clock, never = SystemClock(), threading.Event()
    deadline = clock.monotonic() + OWN_SECONDS
    while True:
        try:
            with owner_failures(config.home, HomeHeld):
                return _decoded(_line_of(answer_from_home(config, request)))
        except HomeHeld as held:
            answer = ask_gateway(config.home, request)
            if answer is not None:
                return answer
            if clock.monotonic() >= deadline:
                who = str(held).partition(";")[0]
                words = f"{who}, which does not answer; its log may say why"
                raise CommandFailure(FAILED, "no-answer", words) from held
        never.wait(TRY_EVERY_SECONDS)


@contextmanager
def owner_failures(place: Path, *but: type[Exception]) -> Iterator[None]:
    """What goes wrong for the owner of a home, or the reader of a backup, becomes a CommandFailure;
    but not these."""
    from koboshi.domain.errors import StoreFailed, StoreRefused

    try:
        yield
    except but:
        raise
    except StoreRefused as error:
        raise CommandFailure(WRONG_SETUP, "home", escaped(str(error))) from error
    except StoreFailed as error:
        raise CommandFailure(STORAGE_FAILED, "storage", escaped(str(error))) from error
    except ConfigError as error:
        raise CommandFailure(WRONG_SETUP, "config", str(error)) from error
    except OSError as error:
        raise _unusable(place, error) from error


def _object_of(request: ControlRequest | Mapping[str, object]) -> dict[str, object]:
    built: dict[str, object] = msgspec.to_builtins(request)
    return built


def _error_type(answer: Mapping[str, object]) -> object:
    error = answer.get("error")
    return error.get("type") if isinstance(error, dict) else None


def _line_of(said: object) -> bytes:
    """A request or an answer, as it goes over the socket."""
    return json.dumps(msgspec.to_builtins(said)).encode() + b"\n"


def unreadable() -> CommandFailure:
    words = "the gateway's answer cannot be read; it may be another version than this command"
    return CommandFailure(FAILED, "no-answer", words)


def _unusable(home: Path, error: OSError) -> CommandFailure:
    said = (error.strerror or str(error)).lower()
    named = "" if error.filename in (None, str(home)) else f": {escaped(str(error.filename))}"
    return CommandFailure(WRONG_SETUP, "home", f"the home {home} cannot be used: {said}{named}")


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name of the socket that the kernel takes, however long the home's name is."""
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX or not Path("/proc/self/fd").exists():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
