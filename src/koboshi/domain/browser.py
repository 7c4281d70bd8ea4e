"""Browsers that were let in: how long each may stay, and what it is called."""

import re
from dataclasses import dataclass
from typing import NewType

BrowserId = NewType("BrowserId", int)

LIFE_MS = 30 * 24 * 3_600_000
"""However much it is used, a browser must log in again after this."""
IDLE_MS = 12 * 3_600_000
USE_NOTED_MS = 3_600_000
"""That a browser is used is written at most this often."""
BROWSERS_MAX = 50
"""Who logs in beyond this many takes the place of the browser that was used least lately."""
LABEL_CHARS_MAX = 60

_PROGRAMS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """One that was let in. What it shows is stored as hashes only."""

    browser_id: BrowserId
    label: str
    made_ms: int
    used_ms: int
    """When it was last used, give or take `USE_NOTED_MS`."""
    expires_ms: int
    revoked_ms: int | None = None


def is_let_in(browser: Browser, now_ms: int) -> bool:
    is_idle = now_ms - browser.used_ms >= IDLE_MS
    return browser.revoked_ms is None and now_ms < browser.expires_ms and not is_idle


def is_use_due(browser: Browser, now_ms: int) -> bool:
    """Whether it is time to write that the browser is used."""
    return now_ms - browser.used_ms >= USE_NOTED_MS


def seconds_left(browser: Browser, now_ms: int) -> int:
    """How long its cookie is good if it is used now and not again."""
    return max(0, min(IDLE_MS, browser.expires_ms - now_ms) // 1000)


def label_of(user_agent: str) -> str:
    """What a browser is called in the list, from what it says of itself. It is only ever shown."""
    program = next((name for mark, name in _PROGRAMS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    if program and system:
        return f"{program} on {system}"
    plain = re.sub(r"[^\x20-\x7e]+", " ", user_agent).strip()[:LABEL_CHARS_MAX].strip()
    return program or plain or "a browser that does not say its name"
