"""What an owner decided about the web."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

EngineName: TypeAlias = Literal["ddgs", "searxng", "brave", "tavily", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """What an owner decided about the web."""

    user_agent: str
    hosts: frozenset[str] = frozenset()
    own_ports: frozenset[int] = frozenset()
    engine: EngineName = "ddgs"
    engine_url: str = ""
    engine_key: str = ""
