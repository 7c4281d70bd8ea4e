"""Starts `koboshi run` while an update is on trial.

A copy of this file stands beside the versions of an installation and belongs to none of them: it
imports nothing of koboshi. `bin/koboshi` calls it only while there is a trial.

Theory of operation. `current` is a link to the version that serves, and that alone decides. A
version on trial makes itself `current` when it is ready, before it receives or sends anything. A
start is counted before it is made. So at every moment one of these is true: the trial has starts
left, and gets the next one; it has none left, and `current`, which is still the version before,
goes back and serves; or `current` is the version on trial, and the trial is over.

The lock is held from the count until the version on trial is ready or dead, also by that version
itself. So no second launcher counts or goes back beside one that may still become ready.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

TRIAL, LOCK, CURRENT, VERSIONS = "trial.json", "trial.lock", "current", "versions"
LOCK_VARIABLE, LIFELINE = "KOBOSHI_TRIAL_LOCK", "KOBOSHI_LIFELINE"
LOCK_SECONDS = 30.0
LOOK_SECONDS = 0.05
PAUSE_SECONDS = 0.2
OK, RESTART, WRONG_SETUP = 0, 75, 78
STOP = (signal.SIGTERM, signal.SIGINT)
PASSED_ON = (signal.SIGHUP, signal.SIGQUIT)
FDS_MAX = 8
DIES_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""

SERVE, TRY, GIVE_UP, FORGET = "serve", "try", "give-up", "forget"


def main(arguments: list[str]) -> int:
    """Run what is to serve. The first argument is the installation, the others are koboshi's."""
    root, words = Path(arguments[0]), arguments[1:]
    home = home_of(words, dict(os.environ))
    try:
        lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _locked(lock):
            _say("an update is on trial, and another process tries it")
            return RESTART
        return _go_on(root, words, lock, home)
    except OSError as error:
        return _without_room(root, words, home, error)


def _go_on(root: Path, words: list[str], lock: int, home: str) -> int:
    """Try, go back or serve. Raises OSError where a step cannot be written down."""
    while True:
        trial = read_trial(root)
        step = next_step(trial, serving(root), home)
        if step == FORGET:
            forget_trial(root)
        if step in (SERVE, FORGET) or trial is None:
            return _become(root, words)
        version = str(trial["version"])
        if step == GIVE_UP:
            _say(f"{version} was not ready; going back to {trial['before']}")
            write_trial(root, {**trial, "phase": "back"})
            continue
        starts = _count(trial["starts"]) + 1
        write_trial(root, {**trial, "starts": starts})
        _say(f"start {starts} of {trial['starts_max']} of {version}, which is on trial")
        life = _Life(root, version, words, lock, float(str(trial["ready_seconds"])))
        code = life.run()
        if life.is_confirmed or life.is_asked:
            return _after(root, words, code)
        why = _how(code, is_late=life.is_late)
        _say(f"{version} {why} before it was ready")
        is_hopeless = code == WRONG_SETUP
        spent = {"starts": trial["starts_max"]} if is_hopeless else {"starts": starts}
        write_trial(root, {**trial, **spent, "why": why})
        _pause()


def _without_room(root: Path, words: list[str], home: str, error: OSError) -> int:
    """The disk is full, say. What was never started has changed nothing, so the version before
    serves, and the trial waits; else another start finds room again, or not yet."""
    trial = read_trial(root)
    step = next_step(trial, serving(root), home)
    is_untried = trial is None or _count(trial.get("starts")) == 0
    _say(f"the trial of an update cannot be written down: {error}")
    if step in (SERVE, FORGET) or is_untried:
        return _become(root, words)
    _pause()
    return RESTART


def next_step(trial: dict[str, object] | None, current: str, home: str) -> str:
    """What to do next, from what is on the disk."""
    if trial is None:
        return SERVE
    if trial.get("version") == current:
        return FORGET
    if trial.get("home") != home or trial.get("phase") == "back":
        return SERVE
    return TRY if _count(trial.get("starts")) < _count(trial.get("starts_max")) else GIVE_UP


def home_of(words: list[str], environ: dict[str, str]) -> str:
    """The home that such a command line means."""
    given = environ.get("KOBOSHI_HOME", "") or "~/.koboshi"
    for place, word in enumerate(words):
        if word == "--home" and place + 1 < len(words):
            given = words[place + 1]
        elif word.startswith("--home="):
            given = word.partition("=")[2]
    return os.path.realpath(os.path.expanduser(given))


def serving(root: Path) -> str:
    """The version that `current` names; empty if there is none."""
    try:
        return os.path.basename(os.readlink(root / CURRENT))
    except OSError:
        return ""


def read_trial(root: Path) -> dict[str, object] | None:
    """The trial; None if there is none, or one that cannot be read: then `current` serves."""
    try:
        found = json.loads((root / TRIAL).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and _is_whole(found) else None


def _is_whole(trial: dict[str, object]) -> bool:
    """Whether all that is asked of a trial is in it."""
    numbers = all(isinstance(trial.get(name), int) for name in ("starts", "starts_max"))
    words = all(isinstance(trial.get(name), str) for name in ("version", "before", "home"))
    return numbers and words and isinstance(trial.get("ready_seconds"), (int, float))


def write_trial(root: Path, trial: dict[str, object]) -> None:
    """Whole, or not at all; durable when it returns."""
    write_durably(root / TRIAL, json.dumps(trial).encode())


def forget_trial(root: Path) -> None:
    (root / TRIAL).unlink(missing_ok=True)
    flush(root)


def write_durably(file: Path, content: bytes) -> None:
    """Replace the file by rename."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with open(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        os.replace(name, file)
    except OSError:
        os.unlink(name)
        raise
    flush(file.parent)


def flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)


class _Life:
    """One start of the version on trial, with this process as its parent until it ends."""

    def __init__(
        self, root: Path, version: str, words: list[str], lock: int, ready_seconds: float
    ) -> None:
        self.root, self.version, self.words, self.lock = root, version, words, lock
        self.ready_seconds = ready_seconds
        self.is_confirmed = self.is_asked = self.is_late = False
        self.manager = os.environ.get("NOTIFY_SOCKET", "")
        self.folder = tempfile.TemporaryDirectory(prefix="koboshi-")
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(f"{self.folder.name}/notify")
        self.woken, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        for number in (*STOP, *PASSED_ON, signal.SIGCHLD):
            signal.signal(number, lambda _number, _frame: None)

    def run(self) -> int:
        """Returns how it ended; a signal is negative."""
        self._tell(f"EXTEND_TIMEOUT_USEC={int((self.ready_seconds + 10) * 1_000_000)}".encode())
        theirs, ours = os.pipe()
        child = os.fork()
        if child == 0:
            self._begin(theirs)
        os.close(theirs)
        deadline = time.monotonic() + self.ready_seconds
        try:
            while True:
                done, status = os.waitpid(child, os.WNOHANG)
                self._look()
                if done:
                    return os.waitstatus_to_exitcode(status)
                if not self.is_confirmed and time.monotonic() >= deadline:
                    self.is_late = True
                    os.kill(child, signal.SIGKILL)
                self._listen(child)
        finally:
            os.close(ours)
            signal.set_wakeup_fd(-1)
            self.notices.close()
            self.folder.cleanup()

    def _begin(self, lifeline: int) -> None:
        """In the child: become the version on trial."""
        try:
            _die_with_parent()
            os.setsid()
            for number in (*STOP, *PASSED_ON, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            own = str(os.getpid())
            environ = {**os.environ, LOCK_VARIABLE: str(self.lock), LIFELINE: str(lifeline)}
            for descriptor in (self.lock, lifeline):
                os.set_inheritable(descriptor, True)
            # What the manager tells one process alone is for the child.
            environ |= {name: own for name in ("LISTEN_PID", "WATCHDOG_PID") if name in environ}
            if self.manager:
                environ["NOTIFY_SOCKET"] = f"{self.folder.name}/notify"
            program = str(self.root / VERSIONS / self.version / "bin" / "koboshi")
            os.execve(program, [program, *self.words], environ)
        except OSError as error:
            _say(f"{self.version} cannot be started: {error}")
        finally:
            os._exit(1)

    def _look(self) -> None:
        if not self.is_confirmed and serving(self.root) == self.version:
            self.is_confirmed = True

    def _listen(self, child: int) -> None:
        above = os.environ.get(LIFELINE, "")
        watched = [self.woken, self.notices.fileno()]
        watched += [int(above)] if above.isdigit() and not self.is_asked else []
        wait = LOOK_SECONDS if not self.is_confirmed else 1.0
        readable, _, _ = select.select(watched, [], [], wait)
        heard = os.read(self.woken, 4096) if self.woken in readable else b""
        if above.isdigit() and int(above) in readable:
            heard += bytes([signal.SIGTERM])
        for number in heard:
            if number in STOP:
                self.is_asked = True
                os.kill(child, signal.SIGTERM)
            elif number in PASSED_ON:
                os.kill(child, number)
        if self.notices.fileno() in readable:
            self._forward()

    def _forward(self) -> None:
        """What the child says to the service manager, which listens to this process alone."""
        said, descriptors, _, _ = socket.recv_fds(self.notices, 4096, FDS_MAX)
        self._tell(said, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _tell(self, said: bytes, descriptors: list[int] | None = None) -> None:
        if not self.manager:
            return
        address = "\0" + self.manager[1:] if self.manager.startswith("@") else self.manager
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            try:
                link.connect(address)
                socket.send_fds(link, [said], descriptors or [])
            except OSError as error:
                _say(f"the service manager cannot be told: {error}")


def _die_with_parent() -> None:
    """A service manager watches the launcher and kills that alone. A gateway that is frozen would
    not notice its lifeline, and would hold the home for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _after(root: Path, words: list[str], code: int) -> int:
    """The exit code once the version on trial has served and ended; where no one would start it
    again, this process does."""
    has_manager = "INVOCATION_ID" in os.environ or "NOTIFY_SOCKET" in os.environ
    if code == RESTART and LIFELINE not in os.environ and not has_manager:
        return _become(root, words)
    return code if code >= 0 else 128 - code


def _become(root: Path, words: list[str]) -> int:
    program = str(root / CURRENT / "bin" / "koboshi")
    try:
        os.execve(program, [program, *words], dict(os.environ))
    except OSError as error:
        _say(f"{program} cannot be started: {error}")
    return WRONG_SETUP


def _locked(lock: int) -> bool:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            _pause()
        else:
            return True


def _pause() -> None:
    select.select([], [], [], PAUSE_SECONDS)


def _how(code: int, *, is_late: bool) -> str:
    if is_late:
        return "took too long"
    return f"ended with code {code}" if code >= 0 else f"was killed by signal {-code}"


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _say(words: str) -> None:
    sys.stderr.write(f"koboshi: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
