"""The size of a request in tokens, estimated without the model."""

from koboshi.domain.transcript import Call, HeardMessage, HeardNote, HeardPicture, Reply, Step
from koboshi.ports.model import Request, ToolSpec

BYTES_PER_TOKEN = 4
PICTURE_TOKENS = 1_500
"""About what providers count for a picture of the size that we send."""
STEP_TOKENS = 8
"""The overhead of a step beside its text."""


def tokens_in(request: Request) -> int:
    """An estimate of the tokens of a request."""
    tools = sum(_tokens_of_tool(tool) for tool in request.tools)
    return tokens_of(request.system) + tools + sum(tokens_of_step(step) for step in request.steps)


def tokens_of_step(step: Step) -> int:
    """An estimate for one step. A reply goes back in the form of its provider, if there is one."""
    words = tokens_of(step.body.text)
    if isinstance(step.body, HeardMessage):
        words += tokens_of(step.body.heading)
    if isinstance(step.body, HeardNote):
        words += tokens_of(step.body.moment)
    if isinstance(step.body, HeardPicture):
        words += PICTURE_TOKENS
    if isinstance(step.body, Reply):
        words += sum(_tokens_of_call(call) for call in step.body.calls)
        words = max(words, tokens_of(step.body.raw))
    return words + STEP_TOKENS


def tokens_of(text: str) -> int:
    """An estimate for a text: other characters than plain letters take more."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_PER_TOKEN)


def clip(text: str, tokens_max: int) -> str:
    """The beginning and the end of a text that is longer than so many tokens."""
    if tokens_of(text) <= tokens_max:
        return text
    marker = " […] "
    room = max(0, tokens_max * BYTES_PER_TOKEN - len(marker.encode()))
    raw = text.encode("utf-8", "replace")
    head, tail = raw[: room - room // 4], raw[len(raw) - room // 4 :]
    return f"{head.decode(errors='ignore')}{marker}{tail.decode(errors='ignore')}"


def _tokens_of_tool(tool: ToolSpec) -> int:
    return tokens_of(tool.name) + tokens_of(tool.description) + tokens_of(tool.parameters)


def _tokens_of_call(call: Call) -> int:
    return tokens_of(call.tool) + tokens_of(call.arguments) + STEP_TOKENS
