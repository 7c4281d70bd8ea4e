"""The power is cut right after the first token of the web was made."""

import os
import random
from pathlib import Path

from koboshi.app.tokens import web_token
from koboshi.config import WebConfig, load
from tests.faults.tally import Tally
from tests.harness.powercut import Disk
from tests.harness.tracer import trace


def token_cut(folder: Path, *, forgets: bool = False) -> Tally:
    """A reader of the token must be able to use it after a power cut, on every file system:
    the least that the disk may hold is looked at. A doctored one that forgets flushes nothing."""
    tally = Tally(campaign="token-cut", cases=1, is_control=forgets)
    home = folder / "home"
    home.mkdir(mode=0o700)

    def make() -> None:
        if forgets:
            setattr(os, "fsync", lambda _: None)  # noqa: B010  (to a type checker they differ)
            setattr(os, "fdatasync", lambda _: None)  # noqa: B010
        for channel in load(home, None, {}).channels:
            if isinstance(channel, WebConfig):
                web_token(home, channel)

    traced = trace(make, home, keeps_contents=True)
    assert traced.exit_code == 0
    disk = Disk(home, has_journal=False)
    for change in traced.changes:
        disk.make(change)
    image = disk.after_a_cut(0, random.Random(0))
    if image.get("web-token", b"") != (home / "web-token").read_bytes():
        tally.violations.append(f"the token is gone; there is {sorted(image)}")
    return tally
