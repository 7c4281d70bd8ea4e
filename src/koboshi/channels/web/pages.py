"""What others serve beside the API: pages for browsers, and what they look at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.routing import BaseRoute


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """`routes` come before the channel's own. The front page, `open_paths` and what is under
    `open_folder` hold nothing private, and are seen without the token."""

    routes: Sequence[BaseRoute] = ()
    open_paths: frozenset[str] = frozenset()
    open_folder: str = ""
    paths: Callable[[], Mapping[str, Any]] = dict
    """Of the OpenAPI document; made when that is asked for."""
    shapes: Sequence[type] = ()
    """What its schemas are made of."""


NO_PAGES = Pages()
