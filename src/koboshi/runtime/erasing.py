"""Finishing erasures: the files of a person go, and the log of the database with what rows said.

Each step can be done again, and the row of the erasure says that it is not finished, so a gateway
that was killed in between does the rest after its next start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from anyio import sleep, to_thread

from koboshi.ports.store import Store
from koboshi.ports.wakeups import ERASURES, Wakeups

log = structlog.get_logger()

POLL_SECONDS = 60.0
PAUSE_SECONDS = 0.5
TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasing:
    store: Store
    workdir: Path
    home: Path
    delete: Callable[[Path], None] = lambda path: path.unlink(missing_ok=True)

    async def keep_erasing(self, wakeups: Wakeups) -> None:
        """Finish what was begun, now and whenever a person asks for it."""
        while True:
            seen = wakeups.count(ERASURES)
            await self.finish()
            await wakeups.wait(ERASURES, POLL_SECONDS, since=seen)

    async def finish(self) -> bool:
        """Finish every erasure. False if something stood in the way; it is tried again."""
        unfinished = await self.store.erasures.unfinished()
        for erasure in unfinished:
            try:
                await to_thread.run_sync(self._delete, erasure.files)
            except OSError as error:
                log.warning("erasure_waits", erasure=erasure.erasure_id, error=str(error))
                return False
            for named in erasure.files:
                await self.store.files.forget(named.removeprefix("home:"))
            await self.store.erasures.files_gone(erasure.erasure_id)
        if unfinished:
            await self.store.search.clear()
        if unfinished and not await self._forget_log():
            log.warning("erasure_waits", error="the log of the database is in use")
            return False
        for erasure in unfinished:
            await self.store.erasures.finished(erasure.erasure_id)
            log.info("erasure_finished", erasure=erasure.erasure_id)
        return True

    async def _forget_log(self) -> bool:
        for _ in range(TRIES):
            if await self.store.erasures.forget_log():
                return True
            await sleep(PAUSE_SECONDS)
        return False

    def _delete(self, files: tuple[str, ...]) -> None:
        roots = {"work": self.workdir, "home": self.home}
        for named in files:
            place, _, path = named.partition(":")
            root = roots[place].resolve()
            if _is_there(root, root / path):
                self.delete(root / path)


def _is_there(root: Path, path: Path) -> bool:
    """Whether a file is where it was put. Programs of the agent write in the work folder: a link on
    the way must not lead the deletion elsewhere, and what is no file is none that was received."""
    try:
        is_inside = path.parent.resolve().is_relative_to(root)
    except RuntimeError:  # links in a circle
        return False
    return is_inside and path.parent.is_dir() and (path.is_symlink() or not path.is_dir())
