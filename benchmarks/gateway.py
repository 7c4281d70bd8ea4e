"""The real `koboshi run` as the operating system and a client see it, from exec to its end."""

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.place import BenchmarkFailed

_READY_SECONDS_MAX = 30
_STOP_SECONDS_MAX = 20
_POLL_SECONDS = 0.004
_IDLE_SECONDS = 1.0
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One start. The memory is that of the gateway a moment after it became ready."""

    ready_seconds: float
    cpu_seconds: float
    resident_mb: float
    own_mb: float
    """Of that, what no other process shares and no file holds."""


def boot(home: Path, *, measures_memory: bool = False) -> Boot:
    """Start a gateway on `home`, wait until it is ready, stop it again. Raises BenchmarkFailed."""
    with _gateway(home) as (process, port, began):
        _wait_until_ready(process, port, _log_of(home))
        ready_seconds = time.monotonic() - began
        used = cpu_seconds(process.pid)
        if measures_memory:
            _wait(_IDLE_SECONDS)
        return Boot(
            ready_seconds=ready_seconds,
            cpu_seconds=used,
            resident_mb=resident_mb(process.pid),
            own_mb=own_mb(process.pid),
        )


def first_answer(home: Path, *, until_logged: str = "", times: int = 0) -> float:
    """Seconds from exec to the answer to a message that is posted as soon as the port is open.
    The gateway is stopped when its log has the words so many times. Raises BenchmarkFailed."""
    with _gateway(home) as (process, port, began):
        _wait_until_answered(process, port, home)
        seconds = time.monotonic() - began
        limit = time.monotonic() + _READY_SECONDS_MAX
        while _log_of(home).read_text(errors="replace").count(until_logged) < times:
            if time.monotonic() > limit:
                raise BenchmarkFailed(f"{until_logged} was not logged {times} times")
            _wait(_IDLE_SECONDS / 10)
        return seconds


def _wait_until_answered(process: subprocess.Popen[bytes], port: int, home: Path) -> None:
    """Post until it is accepted, then follow the chat to the first answer."""
    limit = time.monotonic() + _READY_SECONDS_MAX
    while not _has_posted(port, home):
        if process.poll() is not None or time.monotonic() > limit:
            raise BenchmarkFailed("the first message was not accepted")
        _wait(_POLL_SECONDS)
    with _request(port, home, "GET", "events?from=start") as response:
        while (line := response.readline()) != b"event: answer\n":
            if not line or time.monotonic() > limit:
                raise BenchmarkFailed("the first message was not answered")


def _has_posted(port: int, home: Path) -> bool:
    try:
        with _request(port, home, "POST", "messages", '{"text": "echo hello"}') as response:
            return response.status == 202
    except (OSError, http.client.HTTPException):
        return False  # the port is not open yet


@contextmanager
def _request(
    port: int, home: Path, method: str, what: str, body: str | None = None
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_READY_SECONDS_MAX)
    token = (home / "web-token").read_text().strip()
    headers = {
        "Authorization": f"Bearer {token}",
        "Idempotency-Key": "first",
        "Content-Type": "application/json",
    }
    try:
        connection.request(method, f"/api/v1/sessions/first/{what}", body, headers)
        yield connection.getresponse()
    finally:
        connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A running gateway, and a person who writes to it."""

    process: subprocess.Popen[bytes]
    port: int
    began: float
    home: Path

    def wait_until_ready(self) -> None:
        _wait_until_ready(self.process, self.port, _log_of(self.home))

    def post(self, chat: str, text: str, key: str = "1") -> None:
        """Have a message stored. Raises BenchmarkFailed."""
        status = self._ask("POST", f"/api/v1/sessions/{chat}/messages", {"text": text}, key)[0]
        if status != http.client.ACCEPTED:
            raise BenchmarkFailed(f"a message was not accepted: {status}")

    def wait_until_accepted(self, chat: str, text: str) -> None:
        """Write until it is accepted."""
        self._wait_for("a message accepted", lambda: self._is_accepted(chat, text))

    def wait_until_running(self, turns: int) -> None:
        self._wait_for(f"{turns} turns at work", lambda: self._running() >= turns)

    def stop(self) -> None:
        _stop(self.process)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _wait_for(self, what: str, look: Callable[[], bool]) -> None:
        limit = time.monotonic() + _READY_SECONDS_MAX
        while not look():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise BenchmarkFailed(f"koboshi run did not come to {what}")
            _wait(_POLL_SECONDS)

    def _is_accepted(self, chat: str, text: str) -> bool:
        try:
            self.post(chat, text)
        except OSError:
            return False
        return True

    def _running(self) -> int:
        said = json.loads(self._ask("GET", "/api/v1/status", None)[1])
        running: int = said["turns"].get("running", 0)
        return running

    def _ask(self, method: str, path: str, body: object, key: str = "1") -> tuple[int, bytes]:
        token = (self.home / "web-token").read_text(encoding="ascii").strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        headers["Idempotency-Key"] = key
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Talk]:
    """A gateway on `home`, with these variables of its environment; it is gone afterwards."""
    with _gateway(home, settings) as (process, port, began):
        yield Talk(process=process, port=port, began=began, home=home)


@contextmanager
def _gateway(
    home: Path, settings: Mapping[str, str] = NO_SETTINGS
) -> Iterator[tuple[subprocess.Popen[bytes], int, float]]:
    """A running gateway with its port and when it was started; it is stopped afterwards."""
    if not Path("/proc/self/stat").exists():
        raise BenchmarkFailed("a process is measured by /proc, which this system does not have")
    port = _free_port()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _log_of(home).open("wb") as log:
        began = time.monotonic()
        process = subprocess.Popen(
            [Path(sys.executable).with_name("koboshi"), "run", "--home", str(home)],
            env=_environment(home, port) | dict(settings),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            yield process, port, began
        finally:
            _stop(process)


def _environment(home: Path, port: int) -> dict[str, str]:
    """The defaults, except for the port and for a folder where commands would run."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("KOBOSHI", "PYTHONDONT"))
    }
    return kept | {
        "KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(port),
        "KOBOSHI__GATEWAY__WORKDIR": str(home.parent / "workdir"),
    }


def _log_of(home: Path) -> Path:
    return home.parent / f"{home.name}.log"


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    limit = time.monotonic() + _READY_SECONDS_MAX
    while not _is_ready(port):
        if process.poll() is not None:
            said = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise BenchmarkFailed(
                f"koboshi run ended with exit code {process.returncode}: {said[-1][:200]}"
            )
        if time.monotonic() > limit:
            raise BenchmarkFailed(f"koboshi run was not ready within {_READY_SECONDS_MAX} s")
        _wait(_POLL_SECONDS)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads so far, those that ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    return _status_mb(pid, "VmRSS:")


def own_mb(pid: int) -> float:
    return _status_mb(pid, "RssAnon:")


def _status_mb(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise BenchmarkFailed("the system does not tell how much memory is resident")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def _wait(seconds: float) -> None:
    select.select([], [], [], seconds)
