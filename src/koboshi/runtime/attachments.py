"""Files that came with messages: brought to the working folder before the agent is asked.

Where a file belongs is part of the message, so a turn that goes on after a crash fetches what is
missing and nothing else.
"""

import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from anyio import Path as AsyncPath
from anyio import move_on_after, sleep

from koboshi.domain import notes
from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment
from koboshi.domain.ids import ChannelName
from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.transcript import Message, Note
from koboshi.domain.turn import Claim
from koboshi.ports.channel import Channel
from koboshi.ports.store import Loaded, Store

log = structlog.get_logger()

TRIES = 3
PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachments:
    store: Store
    channels: Mapping[ChannelName, Channel]
    workdir: Path
    seconds: float

    async def bring(self, claim: Claim, loaded: Loaded) -> Loaded:
        """Fetch the turn's missing files. The model is told which files cannot be fetched. Returns
        the turn with these notes."""
        told = {step.body.cause for step in loaded.steps if isinstance(step.body, Note)}
        for message in [step.body for step in loaded.steps if isinstance(step.body, Message)]:
            for place, attachment in enumerate(message.files):
                cause = f"file:{message.entry_id}:{place}"
                path = self.workdir / loaded.standing.folder / attachment.path
                if cause in told or await _is_file(path):
                    continue
                why = await self._fetch(loaded.session.route.channel, attachment, path)
                if why is not None:
                    note = Note(cause=cause, text=notes.file_not_had(attachment.path, why))
                    steps = await self.store.turns.note(claim, note)
                    loaded = replace(loaded, steps=(*loaded.steps, *steps))
        return loaded

    async def _fetch(self, name: ChannelName, attachment: Attachment, path: Path) -> str | None:
        """Fetch one file. Returns the reason if it can never be fetched. Raises an error of a
        resource that comes back: the file may still be fetched later."""
        channel = self.channels.get(name)
        if channel is None:
            return "its channel is gone"
        why = ""
        for _ in range(TRIES):
            try:
                with move_on_after(self.seconds) as limit:
                    await channel.fetch(attachment, path)
                if not limit.cancelled_caught:
                    return None
                why = f"it did not come within {self.seconds:g} seconds"
            except FileNotHad as error:
                return str(error)
            except Exception as error:  # the network or the disk failed: try again
                if shortage_in(error) is not None:
                    raise
                why = f"{type(error).__name__}: {error}"
                log.warning("file_not_fetched", path=attachment.path, why=why)
            await sleep(PAUSE_SECONDS)
        return why


async def _is_file(path: Path) -> bool:
    """Whether the file is there. A link of that name is not one that we have fetched."""
    try:
        return stat.S_ISREG((await AsyncPath(path).lstat()).st_mode)
    except OSError:
        return False
