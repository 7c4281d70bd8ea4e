"""Where a model is, and what is spoken there."""

from dataclasses import dataclass, field
from enum import StrEnum

NO_KEY = "no-key"
"""Sent to a server of one's own that asks for none: libraries and servers insist on something."""


class Provider(StrEnum):
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    OLLAMA = "ollama"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model at one address. An empty `base_url` is the provider's own address."""

    provider: Provider
    model: str
    base_url: str = field(default="", repr=False)  # may hold a password
    api_key: str = field(default="", repr=False)

    @property
    def needs_library(self) -> bool:
        """Whether it is asked by the provider's library; the others we speak to ourselves."""
        return self.provider in (Provider.ANTHROPIC, Provider.GOOGLE)

    @property
    def name(self) -> str:
        """The model as the configuration names it."""
        return f"{self.provider}:{self.model}"
