"""How fast the machine is at this moment: a fixed piece of work, in processor time.

A processor that is shared does less in a millisecond of its time: its neighbours use its caches and
its other half. So an absolute figure is judged as it would be at the speed of the yardstick:
`scaled`. The figure itself is shown, too, and so is the yardstick of its run.
"""

import os
import threading
import time
from functools import cache
from random import Random
from statistics import median

from benchmarks.report import Measure

REFERENCE_MS = 1.3
"""What the work takes on the kind of machine that the targets are for, when it is quiet. At this
figure, the version that took 3.2 ms for a message there takes as much in any run."""
EVERY_SECONDS = 0.05


class Yardstick:
    """Measures beside a load, for as long as that takes."""

    def __init__(self) -> None:
        self._slices: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep_measuring, daemon=True)

    def __enter__(self) -> "Yardstick":
        _work()  # what it needs is made with the first
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def ms(self) -> float:
        """Milliseconds of processor time that the work took."""
        return median(self._slices)

    def scaled(self, milliseconds: float) -> float:
        """A duration as it would be on the quiet machine."""
        return milliseconds * REFERENCE_MS / self.ms

    def measure(self, name: str) -> Measure:
        words = f"{name}: yardstick ({REFERENCE_MS:g} when quiet)"
        return Measure(name=words, unit="ms", values=(self.ms,))

    def _keep_measuring(self) -> None:
        self._slices.append(_slice_ms())
        while not self._is_over.wait(EVERY_SECONDS):
            self._slices.append(_slice_ms())


def _slice_ms() -> float:
    began = time.thread_time()
    _work()
    return 1_000 * (time.thread_time() - began)


def _work() -> int:
    """What a gateway spends its time on: calls, small objects, dictionaries and strings, rows that
    are in no cache any more, and the kernel."""
    rows = [_Row(number, f"chat-{number % 97}") for number in range(1_000)]
    far = _far_rows()
    rows += [far[(number * 7_919) % len(far)] for number in range(1_500)]
    chats: dict[str, list[_Row]] = {}
    for row in rows:
        chats.setdefault(row.chat, []).append(row)
    words = ";".join(f"{chat}={len(found)}" for chat, found in sorted(chats.items()))
    reader, writer = _pipe()
    for _ in range(150):
        os.write(writer, b"x")
        os.read(reader, 1)
    return sum(row.weight() for row in rows) + len(words.encode())


@cache
def _far_rows() -> "list[_Row]":
    rows = [_Row(number, f"chat-{number % 89}") for number in range(200_000)]
    Random(1).shuffle(rows)
    return rows


@cache
def _pipe() -> tuple[int, int]:
    return os.pipe()


class _Row:
    __slots__ = ("chat", "number")

    def __init__(self, number: int, chat: str) -> None:
        self.number = number
        self.chat = chat

    def weight(self) -> int:
        return len(self.chat) + (self.number & 7)
