"""Models for what the scripted one cannot do."""

from collections.abc import Callable
from dataclasses import dataclass, field

from koboshi.models.scripted import ScriptedModel
from koboshi.ports.model import ModelReply, OnText, Request


@dataclass(slots=True)
class WatchedModel:
    """The scripted model; every request is kept, and `before` may raise instead of a reply."""

    before: Callable[[int], Exception | None] = lambda _: None
    """Given the number of the request, from 1."""
    requests: list[Request] = field(default_factory=list)

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        self.requests.append(request)
        error = self.before(len(self.requests))
        if error is not None:
            raise error
        return await ScriptedModel().respond(request)
