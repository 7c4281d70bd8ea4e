"""The browsers that were let in."""

from typing import Protocol

from koboshi.domain.browser import Browser, BrowserId


class Browsers(Protocol):
    """Each is a row: it outlives the gateway, and ends when it is revoked, idle or too old."""

    async def make(self, *, cookie_hash: str, proof_hash: str, label: str) -> Browser:
        """Let one in. The one that was used least lately gives way where there are too many."""
        ...

    async def offer(self, code_hash: str, *, life_ms: int, kept: int) -> None:
        """Keep a code that lets one in, for so long, at any gateway of the store. Only the newest
        few are kept."""
        ...

    async def redeem(self, code_hash: str) -> bool:
        """Whether the code is good, once."""
        ...

    async def find(self, cookie_hash: str) -> tuple[Browser, str] | None:
        """The browser with that cookie, and the hash of its proof; None if it is not let in."""
        ...

    async def use(self, browser_id: BrowserId) -> None:
        """It was used now."""
        ...

    async def revoke(self, browser_id: BrowserId) -> bool:
        """Log it out. False if it was not let in."""
        ...

    async def revoke_all(self) -> int:
        """Let none of them in any more. Returns how many were."""
        ...

    async def listed(self) -> tuple[Browser, ...]:
        """Those that are let in now, the one that was used last first."""
        ...
