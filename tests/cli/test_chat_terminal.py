"""`koboshi chat` at a real terminal, in tmux: editing, history, completion, streaming, restarts."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.process import KOBOSHI, Gateway, environment, gateway, until
from tests.harness.ports import free_port

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

RED, GREEN = "\x1b\\[(?:\\d+;)*31[;m]\\S*", "\x1b\\[(?:\\d+;)*32[;m]\\S*"
SLOW = " ".join(f"word{number}" for number in range(1, 41))


class Terminal:
    """A terminal of 100 by 40, and a person at it."""

    def __init__(self, socket: Path, home: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        variables = {**environment(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self._run("new-session", "-d", "-x", "100", "-y", "40", f"{KOBOSHI} chat", env=variables)

    def _run(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, check=True, env=env
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    @property
    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-S", "-200")

    @property
    def coloured(self) -> str:
        return self._run("capture-pane", "-p", "-e")

    def shows(self, words: str, times: int = 1) -> None:
        until(
            lambda: len(re.findall(words, self.screen)) >= times,
            f"the terminal shows {words!r}",
            otherwise=lambda: self.screen,
        )

    def is_over(self) -> bool:
        done = subprocess.run([*self._tmux, "has-session"], capture_output=True, check=False)
        return done.returncode != 0

    def end(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@contextmanager
def terminal(folder: Path, home: Path) -> Iterator[Terminal]:
    # A socket's name must be short.
    socket = Path("/tmp") / f"koboshi-tmux-{os.getpid()}-{folder.name[-8:]}"
    one = Terminal(socket, home)
    try:
        yield one
    finally:
        one.end()
        socket.unlink(missing_ok=True)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Gateway]:
    with gateway(tmp_path / "home") as made:
        made.wait_serving()
        yield made


def test_lines_are_edited_kept_and_completed_and_answers_are_rendered(
    one: Gateway, tmp_path: Path
) -> None:
    with terminal(tmp_path, one.home) as at:
        at.shows("Ctrl-D leaves")
        at.type("echo **bold** wrods")
        at.keys("BSpace", "BSpace", "BSpace", "BSpace")
        at.type("ords")
        at.keys("Enter")
        at.shows(r"(?m)^bold words")
        at.keys("Up")
        at.shows(r"> echo \*\*bold\*\* words", times=2)
        at.keys("C-c")
        at.type("echo first line")
        at.keys("Escape", "Enter")
        at.type("second line")
        at.keys("Enter")
        at.shows(r"(?m)^first line\s+second line")
        at.type("/sta")
        at.shows("what I am doing now")
        at.keys("Tab", "Enter")
        at.shows("Nothing is going on|Idle|idle|nothing")
        at.keys("C-d")
        until(at.is_over, "it has left")
    assert (one.home / "chat-history").stat().st_mode & 0o077 == 0


def test_a_tool_call_is_one_line_with_its_exit_code(one: Gateway, tmp_path: Path) -> None:
    with terminal(tmp_path, one.home) as at:
        at.shows("Ctrl-D leaves")
        at.type("run ls /not-there")
        at.keys("Enter")
        at.shows(r"✗ terminal ls /not-there \(exit 2, [\d.]+ s\)")
        at.type("run echo fine")
        at.keys("Enter")
        at.shows(r"✓ terminal echo fine \(ok, [\d.]+ s\)")
        failed, fine = (line for line in at.coloured.splitlines() if re.search("[✓✗]", line))
        assert re.search(rf"{RED}  ✗.*{RED}.* \(exit 2", failed), failed
        assert re.search(rf"{GREEN}  ✓", fine), fine
        assert not re.search(RED, fine), fine


def test_an_answer_is_streamed_and_survives_a_kill_in_the_middle(tmp_path: Path) -> None:
    home, port = tmp_path / "home", {"KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(free_port())}
    with gateway(home, **port) as first, terminal(tmp_path, home) as at:
        first.wait_serving()
        at.shows("Ctrl-D leaves")
        at.type(f'script: [{{"text":"{SLOW}","word_ms":80}}]')
        at.keys("Enter")
        at.shows(r"(?m)^word1 word2")
        first.kill()
        at.shows("reconnecting")
        with gateway(home, **port) as second:
            at.shows("(?m)^back")
            second.wait_state("m1", "done")
            at.shows("word40", times=2)
            screen = at.screen
        # Once in the echo of what was typed, once in the answer.
        assert len(re.findall("word40", screen)) == 2, screen


def test_one_message_is_bounded_by_a_timeout(one: Gateway) -> None:
    done = subprocess.run(
        [KOBOSHI, "chat", "--once", 'script: [{"text":"x","sleep_ms":600000}]', "--timeout", "1"],
        env=environment(one.home),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "not answered within 1 s" in done.stderr
