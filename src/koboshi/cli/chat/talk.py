"""One conversation: what is typed goes out, what comes back is shown."""

import uuid
from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol, TextIO

from anyio import Event, create_memory_object_stream, create_task_group, move_on_after
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from koboshi.channels.web.chat_events import Line, MessageLine
from koboshi.channels.web.codec import Post
from koboshi.cli.chat.link import ChatLink, ChatOver
from koboshi.cli.chat.render import render, safe
from koboshi.cli.chat.state import Conversation
from koboshi.domain.phrases import excerpt

UNSENT_MAX = 1_000
GOODBYE_S = 2.0
"""How long to wait, when the person leaves, for what they have just typed to be stored."""
LAST_WORDS_S = 3.0
"""How long to wait for words about a turn that ended without an answer."""
LOOK_S = 2.0
"""How often to ask about messages that nothing is heard of."""
ASKED_ABOUT_MAX = 8
"""Messages of a chat are taken in order: to ask about the first few is enough."""

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Shows(Protocol):
    """Where a conversation is shown."""

    def tell(self, text: str) -> None:
        """Show a part of the conversation."""

    def remark(self, text: str) -> None:
        """Say something about it."""

    def show(self, kind: str, line: Line, url: str) -> None:
        """Show an event of it."""


class Screen:
    """The conversation goes to `out`; remarks on it go to `err`, dim where that is a terminal."""

    def __init__(self, out: TextIO, err: TextIO, *, has_color: bool = True) -> None:
        self._out = out
        self._err = err
        self._is_dim = has_color and err.isatty()

    def tell(self, text: str) -> None:
        _write(self._out, text)

    def show(self, kind: str, line: Line, url: str) -> None:
        for said in render(kind, line, url):
            if said.is_aside:
                self.remark(said.text)
            else:
                self.tell(said.text)

    def remark(self, text: str) -> None:
        _write(self._err, f"{DIM}{safe(text)}{PLAIN}" if self._is_dim else safe(text))


class Talk:
    def __init__(
        self,
        link: ChatLink,
        screen: Shows,
        *,
        thread: str,
        is_interactive: bool,
        last_words_s: float = LAST_WORDS_S,
    ) -> None:
        self._link = link
        self._screen = screen
        self._conversation = Conversation(thread)
        self._is_interactive = is_interactive
        self._last_words_s = last_words_s
        self._changed = Event()
        self._code = 0

    async def run(self, lines: AsyncIterable[str]) -> int:
        """Talk until the lines end; without a person also until everything is answered. Returns
        the exit code."""
        sender, receiver = create_memory_object_stream[tuple[str, Post]](UNSENT_MAX)
        try:
            async with self._link, sender, receiver, create_task_group() as tasks:
                tasks.start_soon(self._link.follow, self._see)
                tasks.start_soon(self._post, receiver)
                await self._read(lines, sender)
                await self._finish()
                tasks.cancel_scope.cancel()
        except* ChatOver as group:
            over = group.exceptions[0]
            assert isinstance(over, ChatOver)
            self._screen.remark(over.message)
            self._code = over.code
        finally:
            for post in self._conversation.unstored:
                self._screen.remark(f"not sent: {excerpt(post.text)}")
        return self._code

    async def _read(
        self, lines: AsyncIterable[str], sender: MemoryObjectSendStream[tuple[str, Post]]
    ) -> None:
        async for line in lines:
            if line.strip():
                key, post = uuid.uuid4().hex, self._conversation.compose(line)
                self._conversation.sending(key, post)
                await sender.send((key, post))

    async def _post(self, receiver: MemoryObjectReceiveStream[tuple[str, Post]]) -> None:
        """Have the messages stored, one after the other: their order is the person's."""
        async for key, post in receiver:
            accepted = await self._link.post(key, post)
            if isinstance(accepted, str):
                self._conversation.refused(key)
                self._screen.remark(f"not sent: {accepted}")
                self._code = 1
            else:
                self._conversation.stored(key, accepted)
            self._stir()

    def _see(self, kind: str, line: Line, place: int) -> None:
        is_echo = isinstance(line, MessageLine) and self._conversation.is_mine(line)
        self._conversation.see(kind, line, place)
        if not is_echo:
            self._screen.show(kind, line, self._link.url)
        self._stir()

    def _stir(self) -> None:
        self._changed.set()
        self._changed = Event()

    async def _finish(self) -> None:
        """Nothing more is typed. A person leaves at once; without one, answers are waited for."""
        if self._is_interactive:
            with move_on_after(GOODBYE_S):
                while self._link.is_up and self._conversation.unstored:
                    await self._changed.wait()
            return
        while True:
            changed = self._changed
            for message in self._conversation.unplaced[:ASKED_ABOUT_MAX]:
                if standing := await self._link.standing(message):
                    self._conversation.placed(standing)
            if self._conversation.settle():
                return
            is_over = self._conversation.is_over()
            with move_on_after(self._last_words_s if is_over else LOOK_S) as limit:
                await changed.wait()
            if is_over and limit.cancelled_caught:
                return


async def one_line(text: str) -> AsyncIterator[str]:
    yield text


def _write(stream: TextIO, text: str) -> None:
    try:
        print(text, file=stream, flush=True)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        print(text.encode(encoding, "replace").decode(encoding), file=stream, flush=True)
