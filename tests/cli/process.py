"""Real `koboshi` processes for the tests of the command line, and waiting for what they do."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from koboshi.cli.ask_owner import ask_gateway
from tests.harness import nursery
from tests.harness.polling import pause_after

Found = TypeVar("Found")

KOBOSHI = str(Path(sys.executable).with_name("koboshi"))
WITHIN_S = 100.0
"""Only a hang meets it: a busy machine takes half a minute to start a program."""
NOBODY = 65_534

_ADDRESS = re.compile(r"koboshi is at http://([0-9.]+):([0-9]+)")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command that has ended left behind."""

    code: int
    out: str
    err: str
    cpu_s: float = 0.0

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


def until(
    look: Callable[[], Found | None],
    what: str,
    *,
    within_s: float = WITHIN_S,
    otherwise: Callable[[], str] = lambda: "",
) -> Found:
    """What `look` finds, as soon as it finds something. Fails when the time is up."""
    begun = time.monotonic()
    deadline = begun + within_s
    never = threading.Event()
    while not (found := look()):
        now = time.monotonic()
        assert now < deadline, f"{what}: not within {within_s:g} s\n{otherwise()}"
        never.wait(pause_after(now - begun))
        begun = time.monotonic()
    return found


def environment(home: Path | None = None, **more: str) -> dict[str, str]:
    """The defaults, whatever the one who runs the tests has set; and any free port."""
    # Compiling it all takes longer than a start, so what was compiled is kept.
    ours = ("KOBOSHI", "INVOCATION_ID", "NOTIFY_SOCKET", "WATCHDOG_", "NO_COLOR", "PYTHONDONT")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    place = {} if home is None else {"KOBOSHI_HOME": str(home)}
    settings = {
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": "0",
        "KOBOSHI__GATEWAY__DRAIN_SECONDS": "1",
        # Most tests kill more often than a gateway that is well should die.
        "KOBOSHI__RECOVERY__BOOT_BREAKER": "false",
        "KOBOSHI_LOG": "json",
    }
    return {**kept, **place, **settings, **more}


def koboshi(*arguments: str, home: Path | None = None, **more: str) -> Ended:
    """Run a command to its end. `more` are variables of its environment."""
    return forked(arguments, environment(home, **more))


def forked(arguments: Sequence[str], env: Mapping[str, str]) -> Ended:
    """`koboshi` with these arguments, without the time that it takes to load it."""
    with tempfile.TemporaryDirectory(prefix="koboshi-test-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        code = nursery.start("koboshi", arguments, env, out, err).wait(WITHIN_S)
        return Ended(code, out.read_text(), err.read_text())


def ended(command: Sequence[str], env: Mapping[str, str], *, within_s: float = WITHIN_S) -> Ended:
    """A program of any kind, and the processor time that it took."""
    before = os.times()
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=within_s,
        check=False,
    )
    after = os.times()
    cpu_s = after.children_user + after.children_system
    cpu_s -= before.children_user + before.children_system
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode(), cpu_s)


def python(program: str) -> list[str]:
    """The command that runs some Python, before and around `koboshi`."""
    return [sys.executable, "-c", program]


def as_other_user(*arguments: str, home: Path, **more: str) -> Ended:
    """Run a command as a user without rights. The interpreter may be where they cannot look, so
    everything is loaded before the rights are given up."""
    program = f"""
import os, sys
import koboshi.app.owned, koboshi.app.serve, koboshi.cli.configuration, koboshi.cli.doctor.command
import koboshi.cli.inspect, koboshi.cli.run, koboshi.logs, koboshi.models.scripted
import anyio._backends._asyncio, encodings.ascii, encodings.idna, unicodedata, uvloop
from koboshi.cli.main import main
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
main({list(arguments)!r})
"""
    return ended(python(program), environment(home, **more))


def can_other_user_look() -> bool:
    """Whether a user without rights can read the files that the program reads while it runs."""
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in Path(__file__).parents)


@contextmanager
def passable_folder() -> Iterator[Path]:
    """A folder that every person may pass through; the tests' own is closed to others."""
    with tempfile.TemporaryDirectory(prefix="koboshi-test-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


class Gateway:
    """A `koboshi run` in the background, with its output in files beside its home."""

    def __init__(
        self, home: Path, *arguments: str, command: Sequence[str] = (KOBOSHI,), **more: str
    ) -> None:
        self.home = home
        home.parent.mkdir(parents=True, exist_ok=True)
        stem = uuid.uuid4().hex[:8]
        self.out_file = home.parent / f"{stem}.out"
        self.err_file = home.parent / f"{stem}.err"
        self.process: subprocess.Popen[bytes] | nursery.Forked
        loaded = _loaded(command)
        if loaded is not None and "--supervise" not in arguments:
            module, first = loaded
            told, env = [*first, "run", *arguments], environment(home, **more)
            self.process = nursery.start(module, told, env, self.out_file, self.err_file)
            return
        with self.out_file.open("wb") as out, self.err_file.open("wb") as err:
            self.process = subprocess.Popen(
                [*command, "run", *arguments],
                env=environment(home, **more),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def out(self) -> str:
        return self.out_file.read_text()

    @property
    def err(self) -> str:
        return self.err_file.read_text()

    @property
    def pid(self) -> int:
        return self.process.pid

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name in its log."""
        lines = [line for line in self.err.splitlines() if line.startswith("{")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def wait_serving(self, times: int = 1) -> tuple[str, int]:
        """Wait until it has announced its address so many times. Returns the newest."""

        def look() -> tuple[str, int] | None:
            found = _ADDRESS.findall(self.out)
            assert found or self.process.poll() is None, self.err
            return (found[-1][0], int(found[-1][1])) if len(found) >= times else None

        return until(look, "the gateway serves", otherwise=lambda: self.err)

    def wait_end(self, within_s: float = WITHIN_S) -> int:
        """Wait until it has ended. Returns its exit code."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not ended within {within_s:g} s\n{self.err}") from None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait_end()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait_end()

    def say(self, chat: str, text: str, key: str = "") -> str:
        """Post a message. Returns its id, as people write it."""
        host, port = self.wait_serving()
        connection = http.client.HTTPConnection(host, port, timeout=WITHIN_S)
        token = (self.home / "web-token").read_text().strip()
        headers = {
            "Authorization": f"Bearer {token}",
            "Idempotency-Key": key or uuid.uuid4().hex,
            "Content-Type": "application/json",
        }
        path = f"/api/v1/sessions/{chat}/messages"
        try:
            connection.request("POST", path, json.dumps({"text": text}), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status == 202, answer
        message: str = answer["message"]
        return message

    def asked(self, **request: object) -> Any:
        """What the gateway answers on its socket. A command would be told the same, and take a
        hundred times as long."""
        answer = ask_gateway(self.home, request)
        assert answer is not None, "nobody is there to be asked"
        return answer

    def explained(self, what: str) -> Any:
        """What is told about a thing by the gateway, or by its home while none runs."""
        answer = ask_gateway(self.home, {"ask": "explain", "what": what})
        return answer or koboshi("explain", what, "--json", home=self.home).document

    def wait_state(self, message: str, *states: str) -> Any:
        """Wait until the turn of a message is in one of these states. Returns what is told."""

        def look() -> Any:
            told = self.explained(message)
            return told if told["kind"] == "turn" and told["turn"]["state"] in states else None

        return until(look, f"{message} is {' or '.join(states)}")

    def bury(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WITHIN_S)


def _loaded(command: Sequence[str]) -> tuple[str, list[str]] | None:
    """The module that such a command runs, and its first arguments, if it can begin as a copy of a
    process that has loaded it."""
    if tuple(command) == (KOBOSHI,):
        return "koboshi", []
    return (command[2], [*command[3:]]) if tuple(command[:2]) == (sys.executable, "-m") else None


@contextmanager
def gateway(
    home: Path, *arguments: str, command: Sequence[str] = (KOBOSHI,), **more: str
) -> Iterator[Gateway]:
    """A gateway that serves."""
    with starting(home, *arguments, command=command, **more) as one:
        one.wait_serving()
        yield one


@contextmanager
def starting(
    home: Path, *arguments: str, command: Sequence[str] = (KOBOSHI,), **more: str
) -> Iterator[Gateway]:
    """A gateway that was started, and may not get far."""
    one = Gateway(home, *arguments, command=command, **more)
    try:
        yield one
    finally:
        one.bury()


def is_there(pid: int) -> bool:
    """Whether a process lives; one that only waits to be buried does not."""
    state, _ = _state_and_parent(str(pid))
    return state not in ("Z", "X", "")


def is_stopped(pid: int) -> bool:
    """Whether every thread of a process stands still."""
    threads = [each.name for each in Path(f"/proc/{pid}/task").iterdir()]
    return all(_state_and_parent(f"{pid}/task/{thread}")[0] == "T" for thread in threads)


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    numbers = [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]
    found = [number for number in numbers if _state_and_parent(number)[1] == pid]
    return [int(number) for number in found if is_there(int(number))]


def _state_and_parent(pid: str) -> tuple[str, int]:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return words[0], int(words[1])


def child_of(parent: Gateway) -> int:
    """The process that serves."""
    status = koboshi("status", "--json", home=parent.home).document
    assert status["is_running"], status
    pid: int = status["worker"]["pid"]
    assert pid != parent.pid
    return pid
