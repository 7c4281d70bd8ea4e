"""`folder`: a platform of files. `in/<chat>.<name>` is a message, `out/<chat>.<key>` an answer."""

from pathlib import Path

import anyio

from koboshi.plugin import (
    Abilities,
    Accept,
    ChannelName,
    ChannelSetting,
    ChannelUnusable,
    Delivery,
    Inbound,
    OptionalParts,
    Refused,
    Route,
    SendOutcome,
    Sent,
    Words,
)


class FolderChannel(OptionalParts):
    def __init__(self, setting: ChannelSetting) -> None:
        self.name: ChannelName = setting.name
        self.trouble: str | None = "not looked yet"
        self._folder = Path(str(setting.settings.get("folder", "")))
        self._on_back = setting.on_back

    @property
    def abilities(self) -> Abilities:
        return Abilities(idempotent_send=True)

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        taken = self._folder / "taken"
        if not (self._folder / "in").is_dir():
            self.trouble = f"{self._folder} has no folder in"
            raise ChannelUnusable(self.trouble)
        for folder in (taken, self._folder / "out"):
            folder.mkdir(exist_ok=True)
        await accept([])
        while True:
            files = sorted((self._folder / "in").iterdir())
            if files:
                await accept([self._read(file) for file in files])
                for file in files:  # only now: what was not stored stays, and comes again
                    file.rename(taken / file.name)
            if self.trouble is not None:
                self.trouble = None
                self._on_back()
            await anyio.sleep(0.05)

    async def send(self, delivery: Delivery) -> SendOutcome:
        name = f"{delivery.route.chat}.{delivery.send_key}"
        part = self._folder / f".{name}.part"
        try:
            part.write_text(delivery.text, encoding="utf-8")
            part.rename(self._folder / "out" / name)  # a repeat replaces the same file
        except OSError as error:
            return Refused(reason=f"{name} cannot be written: {error.strerror}")
        return Sent(platform_id=name)

    def _read(self, file: Path) -> Inbound:
        chat, _, _ = file.name.partition(".")
        sent_ms = int(file.stat().st_mtime * 1000)
        return Inbound(
            route=Route(channel=self.name, chat=chat),
            external_id=file.name,
            sender=file.owner(),
            words=Words(text=file.read_text(encoding="utf-8"), sent_ms=sent_ms),
            is_private=True,
        )
