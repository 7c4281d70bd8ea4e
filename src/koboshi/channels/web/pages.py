"""What others serve beside the API: pages for browsers, and what they look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """`routes` come before the channel's own. The front page, `open_paths` and what is under
    `open_folder` hold nothing private, and are seen without the token."""

    routes: Sequence[BaseRoute] = ()
    open_paths: frozenset[str] = frozenset()
    open_folder: str = ""
    paths: Mapping[str, Any] = field(default_factory=dict)
    """Of the OpenAPI document."""
    shapes: Sequence[type] = ()
    """What its schemas are made of."""


NO_PAGES = Pages()
