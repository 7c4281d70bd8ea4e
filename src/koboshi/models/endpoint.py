"""Where a model is, and what is spoken there."""

from dataclasses import dataclass, field
from enum import StrEnum


class Provider(StrEnum):
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    OLLAMA = "ollama"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model at one address. An empty `base_url` is the provider's own address."""

    provider: Provider
    model: str
    base_url: str = field(default="", repr=False)  # may hold a password
    api_key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The model as the configuration names it."""
        return f"{self.provider}:{self.model}"
