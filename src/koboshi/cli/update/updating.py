"""The steps of an update. Each can be the last: whatever is there then serves, and repeating the
command goes on."""

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from koboshi.app.trial import crash_point
from koboshi.cli.ask_owner import ask_gateway, ask_owner
from koboshi.cli.backup import KEPT, backup_made
from koboshi.cli.options import FAILED, CommandFailure
from koboshi.cli.update.building import build, run_told, wanted
from koboshi.cli.update.installation import (
    READY_SECONDS,
    STARTS_MAX,
    Installation,
    VersionTrial,
    made,
)
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.control.requests import GetStatus, RestartGateway

REHEARSAL = "rehearsal"
LOOK_SECONDS = 0.1
MARGIN_SECONDS = 60.0

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSteps:
    ours: Installation
    config: Config
    config_file: Path | None
    tell: Tell
    starts_max: int = STARTS_MAX
    ready_seconds: float = READY_SECONDS

    def to(self, asked: str) -> str:
        """Bring the installation to the version that was asked for; returns it. Raises
        CommandFailure; then the version before serves."""
        with _alone(self.ours):
            self._check_place()
            version, where = wanted(asked)
            if version == self.ours.current:
                self.tell(f"{version} is the version that serves")
                prune(self.ours)
                return version
            reach = crash_point(os.environ).reach
            if not self._is_under_way(version):
                self.tell(f"building {version} in {self.ours.folder(version)}")
                build(self.ours, version, where)
                reach("update.built", "after")
                self.tell("checking it on a copy of the database")
                self._rehearse(version)
                reach("update.checked", "after")
                self.ours.begin(self._trial(version))
                reach("update.begun", "after")
            self._try(version)
            reach("update.tried", "after")
            prune(self.ours)
            return version

    def _check_place(self) -> None:
        root = self.ours.root
        if not os.access(root, os.W_OK):
            words = f"{root} belongs to another user; run this as the user of the gateway"
            raise CommandFailure(FAILED, "user", words)

    def _trial(self, version: str) -> VersionTrial:
        return VersionTrial(
            version=version,
            before=self.ours.current,
            home=os.path.realpath(self.config.home),
            starts_max=self.starts_max,
            ready_seconds=self.ready_seconds,
        )

    def _is_under_way(self, version: str) -> bool:
        """Whether an earlier command has begun this trial. One that was never started gives way to
        another. Raises CommandFailure for one that was."""
        trial = self.ours.trial()
        if trial is None or (trial.starts == 0 and trial.version != version):
            return False
        if trial.version == version and not trial.goes_back:
            return True
        words = f"{trial.version} is on trial; repeat this when that is decided"
        raise CommandFailure(FAILED, "trial", words)

    def _rehearse(self, version: str) -> None:
        """Have the new version open a copy of the database in a home of its own."""
        folder = self.ours.root / REHEARSAL
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        try:
            self._copy(folder)
            program = str(self.ours.folder(version) / "bin" / "koboshi")
            named = [] if self.config_file is None else ["--config", str(self.config_file)]
            command = [program, "update", "--rehearse", str(folder)]
            run_told(command, "--home", str(self.config.home), *named)
        except CommandFailure as failure:
            words = f"{version} is not used: {failure.message}\nnothing was changed"
            raise CommandFailure(FAILED, "rehearsal", words) from failure
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _copy(self, folder: Path) -> None:
        config = self.config
        if not config.store.url and not (config.home / "koboshi.db").exists():
            return
        done = backup_made(config, str(folder / "koboshi.db"), KEPT, lambda *_: None)
        if done.state != "made":
            raise CommandFailure(FAILED, "copy", f"the database cannot be copied: {done.trouble}")

    def _try(self, version: str) -> None:
        """Have the gateway start again, and wait for the end of the trial."""
        trial, boot = self.ours.trial(), self._boot()
        if trial is not None and boot is None and not self._is_tried():
            self.tell(f"no gateway runs here; {version} is tried when it is started next")
            return
        if trial is not None and trial.starts == 0:
            self.tell("asking the gateway to start again")
            ask_owner(self.config, RestartGateway())
        self._wait(boot)
        if self.ours.current != version:
            why = self.ours.last().get("why") or "it was not ready"
            words = f"{version} {why}; {self.ours.current} serves again"
            raise CommandFailure(FAILED, "went-back", words)

    def _wait(self, boot: object) -> None:
        clock, never = SystemClock(), threading.Event()
        drain = self.config.gateway.drain_seconds
        seconds = self.starts_max * self.ready_seconds + drain + MARGIN_SECONDS
        deadline = clock.monotonic() + seconds
        while (trial := self.ours.trial()) is not None and trial.version != self.ours.current:
            now = self._boot()
            if now not in (None, boot) and trial.starts == 0:
                words = (
                    f"the gateway is back, and was not started by {self.ours.launcher}; have the "
                    "service start that: `koboshi service install`"
                )
                raise CommandFailure(FAILED, "launcher", words)
            if clock.monotonic() >= deadline:
                words = "the trial is not decided yet; the log of the gateway may say why"
                raise CommandFailure(FAILED, "no-answer", words)
            never.wait(LOOK_SECONDS)

    def _is_tried(self) -> bool:
        """Whether a process tries it now."""
        with open(self.ours.lock, "a+b") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _boot(self) -> object:
        """The boot of the gateway that runs; None if none does."""
        try:
            answer = ask_gateway(self.config.home, GetStatus())
        except CommandFailure:
            return None
        worker = None if answer is None else answer.get("worker")
        return worker.get("worker_id") if isinstance(worker, dict) else None


def installed(root: Path, asked: str, tell: Tell) -> Installation:
    """An installation of ours at `root` with the version. Raises CommandFailure."""
    if root.exists() and any(root.iterdir()) and not (root / "installation.json").exists():
        raise CommandFailure(FAILED, "folder", f"{root} is not empty")
    ours = made(root)
    with _alone(ours):
        version, where = wanted(asked)
        tell(f"building {version} in {ours.folder(version)}")
        build(ours, version, where)
        if not ours.current:
            ours.switch(version)
    return ours


def prune(ours: Installation) -> None:
    """Remove versions that neither serve nor were before, and that no process uses: the runner of a
    command stays with the version that started it."""
    last, trial = ours.last(), ours.trial()
    kept = {ours.current, str(last.get("before", "")), str(last.get("version", ""))}
    kept |= set() if trial is None else {trial.version, trial.before}
    for version in ours.versions():
        if version not in kept and version not in ours.in_use():
            ours.remove(version)


@contextmanager
def _alone(ours: Installation) -> Iterator[None]:
    """One update at a time."""
    with open(ours.root / "update.lock", "a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = f"another update of {ours.root} is under way"
            raise CommandFailure(FAILED, "held", words) from None
        yield
