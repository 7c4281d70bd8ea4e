"""Whether a platform can be had: why not, for the health report, and who is told when it can be."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.channels.common.serving import one_of
from koboshi.domain.errors import ChannelUnusable

TROUBLE_CHARS_MAX = 300


@dataclass(slots=True, kw_only=True)
class Reachable:
    """What receives from a platform begins here."""

    on_back: Callable[[], None] = lambda: None
    """Called when the platform can be had again."""
    _trouble: str | None = "not connected yet"

    in_words: ClassVar[tuple[type[Exception], ...]] = (NotReached, NoAnswer, ChannelUnusable)
    """The errors whose words are for people."""

    @property
    def trouble(self) -> str | None:
        """Why nothing comes in; None if it does."""
        return self._trouble

    @trouble.setter
    def trouble(self, trouble: str | None) -> None:
        is_back = trouble is None and self._trouble is not None
        self._trouble = trouble
        if is_back:
            self.on_back()

    @contextmanager
    def connecting(self) -> Iterator[None]:
        """A time of receiving. What ends it is kept as the trouble, and raised by itself: the first
        error, where a group of tasks has ended."""
        try:
            yield
        except ExceptionGroup as group:
            lost = one_of(group)
            if isinstance(lost, self.in_words):
                self.trouble = str(lost)[:TROUBLE_CHARS_MAX]
            raise lost from None
        except self.in_words as lost:
            self.trouble = str(lost)[:TROUBLE_CHARS_MAX]
            raise
        finally:
            self.trouble = self.trouble or "not connected"
