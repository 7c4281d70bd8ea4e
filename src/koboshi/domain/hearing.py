"""How well a channel hears its platform: when it last did, and how far it is behind."""

from dataclasses import dataclass

from koboshi.domain.durations import ago, duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    heard_ms: int | None = None
    """When the platform last said anything; None where it is not asked, or has not yet."""
    chats_behind: int = 0
    """Chats whose older messages are still being fetched."""
    behind_since_ms: int | None = None
    """When that began; None if no chat is behind."""

    def heard_ago_ms(self, now_ms: int) -> int | None:
        return None if self.heard_ms is None else max(0, now_ms - self.heard_ms)

    def behind_ms(self, now_ms: int) -> int:
        """For how long older messages are being fetched; 0 if none are."""
        return 0 if self.behind_since_ms is None else max(0, now_ms - self.behind_since_ms)


NOT_LISTENING = Hearing()
"""Of a channel that is called and calls no platform."""


def hearing_words(hearing: Hearing, now_ms: int) -> str:
    """The same in words for a person; empty if there is nothing to say."""
    said = []
    if hearing.heard_ms is not None:
        said.append(f"heard {ago(hearing.heard_ms, now_ms)}")
    if hearing.chats_behind:
        chats = "1 chat" if hearing.chats_behind == 1 else f"{hearing.chats_behind} chats"
        said.append(f"{chats} behind, catching up for {duration(hearing.behind_ms(now_ms))}")
    return "; ".join(said)
