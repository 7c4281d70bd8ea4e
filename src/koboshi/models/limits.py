"""How long, and how much, a request to a provider may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The bounds of one request, in seconds unless they say otherwise."""

    load_s: float = 60  # the provider's library, once
    connect_s: float = 10
    first_s: float = 300  # until the reply begins: a local model may have to be loaded
    idle_s: float = 180  # between two pieces of a reply: some think in silence
    total_s: float = 1_800
    reply_chars_max: int = 4_000_000  # text, thoughts and arguments together
