"""Which platforms there are. The only list of them beside the one of their keys."""

from importlib import import_module
from typing import Final

from koboshi.app.platforms.platform import KnownPlatform

OWN: Final = ("telegram", "matrix", "discord", "slack")
"""Our own, in the order in which they are shown. `app/platforms/<name>.py` has its `PLATFORM`."""


def platform_of(name: str) -> KnownPlatform:
    """The platform of a configured channel: ours, else one that a plug-in brings."""
    place = name if name in OWN else "foreign"
    platform = import_module(f"koboshi.app.platforms.{place}").PLATFORM
    assert isinstance(platform, KnownPlatform)
    return platform
