"""What the Bot API says when it does not do what it was asked to do."""

from typing import NoReturn

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)
OTHER_POLLER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is"
    " running"
)
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete"
    " the webhook first"
)
WEBHOOK_SET = "Conflict: terminated by setWebhook request"


class Refusal(Exception):
    """An answer with `ok: false`; nothing was done."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(f"{code} {description}")
        self.code = code
        self.description = description
        self.parameters = parameters


def bad_request(words: str, **parameters: int) -> NoReturn:
    raise Refusal(400, f"Bad Request: {words}", **parameters)


def forbidden(words: str) -> NoReturn:
    raise Refusal(403, f"Forbidden: {words}")


def too_many_requests(retry_after_s: int) -> Refusal:
    words = f"Too Many Requests: retry after {retry_after_s}"
    return Refusal(429, words, retry_after=retry_after_s)
