"""Chat completions, which most servers speak."""

from collections.abc import Callable

from koboshi.models.chat.body import body_of
from koboshi.models.chat.chunks import ReplyReader
from koboshi.models.endpoint import Endpoint, Provider
from koboshi.models.talk import ReplyOrigin
from koboshi.ports.model import Request


class Chat:
    """A `Language`."""

    path = "chat/completions"

    def system(self, endpoint: Endpoint) -> str:
        if endpoint.provider is Provider.OLLAMA:
            return "ollama"
        return "openai-compatible" if endpoint.base_url else "openai"

    def body(self, request: Request, model: str, origin: ReplyOrigin) -> bytes:
        return body_of(request, model, origin)

    def reader(self, on_text: Callable[[str], None] | None, chars_max: int) -> ReplyReader:
        return ReplyReader(on_text, chars_max)
