"""What the Web API says when it does not do what it was asked to do."""

from typing import NoReturn


class SlackRefusal(Exception):
    """An answer with `ok: false`; nothing was done."""

    def __init__(self, error: str, **more: object) -> None:
        super().__init__(error)
        self.error = error
        self.more = more


class RateLimited(Exception):
    """Too many calls of a method: 429, with the seconds to wait."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"wait {seconds} s")
        self.seconds = seconds


def refuse(error: str, **more: object) -> NoReturn:
    raise SlackRefusal(error, **more)
