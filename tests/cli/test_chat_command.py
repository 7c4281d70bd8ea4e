"""`koboshi chat` as a program: pipes, terminals, signals and exit codes."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path

import pytest
from anyio import fail_after, open_process, run_process
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_input
from prompt_toolkit.output import DummyOutput

from koboshi.cli.chat.command import chat
from koboshi.cli.chat.input import lines_of
from koboshi.cli.chat.terminal import TerminalScreen
from koboshi.ports.channel import Inbound, Receipt
from tests.channels.fakes import TOKEN, FakeGateway, serving, until, web_channel
from tests.harness.polling import WITHIN_S

CHAT = [sys.executable, "-c", "from koboshi.cli.chat.command import chat; chat(prog_name='chat')"]
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    token = tmp_path / "web-token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    return tmp_path


@pytest.fixture
def gateway() -> FakeGateway:
    gateway = FakeGateway()

    def answer(inbound: Inbound, receipt: Receipt) -> None:
        gateway.say(inbound.route, f"you said {inbound.words.text}", turn=int(receipt.entry_id))

    gateway.on_message = answer
    return gateway


async def test_lines_from_a_pipe_are_answered_on_standard_output(
    gateway: FakeGateway, home: Path
) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url:
        done = await run_process(
            [*CHAT, "--home", str(home), "--url", url], input="eins\nzwei ü".encode()
        )

    assert done.stdout.decode().splitlines() == ["you said eins", "you said zwei ü"]
    assert done.stderr == b""
    assert {inbound.route.chat for _, inbound in gateway.stored.values()} == {"terminal"}


async def test_one_message_can_be_given_as_an_argument(gateway: FakeGateway, home: Path) -> None:
    options = ["--url", "", "--chat", "café 1", "--thread", "a", "--once", "hi"]
    async with serving(web_channel(gateway), gateway.accept) as url:
        options[1] = url
        done = await run_process([*CHAT, "--home", str(home), *options], stdin=subprocess.DEVNULL)

    assert done.stdout == b"you said hi\n"
    ((_, inbound),) = gateway.stored.values()
    assert (inbound.route.chat, inbound.route.thread) == ("café 1", "a")


async def test_the_home_comes_from_the_environment(gateway: FakeGateway, home: Path) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url:
        done = await run_process(
            [*CHAT, "--url", url, "--once", "hi"], env=os.environ | {"KOBOSHI_HOME": str(home)}
        )

    assert done.stdout == b"you said hi\n"


async def test_a_wrong_token_exits_78(gateway: FakeGateway, home: Path) -> None:
    (home / "web-token").write_text("another")
    async with serving(web_channel(gateway), gateway.accept) as url:
        done = await run_process(
            [*CHAT, "--home", str(home), "--url", url, "--once", "hi"], check=False
        )

    assert done.returncode == 78
    assert b"or has another token" in done.stderr
    assert not gateway.stored


async def test_a_wrong_token_exits_78_from_a_pipe(gateway: FakeGateway, home: Path) -> None:
    (home / "web-token").write_text("another")
    async with serving(web_channel(gateway), gateway.accept) as url:
        command = [*CHAT, "--home", str(home), "--url", url]
        done = await run_process(command, input=b"hi\n", check=False)

    assert done.returncode == 78
    # Whether the line was read before the answer of the gateway depends on which is quicker.
    reason, *lost = done.stderr.decode().splitlines()
    assert "nothing was sent to it" in reason
    assert lost in ([], ["not sent: hi"])
    assert not gateway.stored


async def test_a_token_that_others_can_read_is_refused(home: Path) -> None:
    (home / "web-token").chmod(0o644)

    done = await run_process([*CHAT, "--home", str(home), "--once", "hi"], check=False)

    assert done.returncode == 78
    assert b"chmod 600" in done.stderr
    assert TOKEN.encode() not in done.stderr


async def test_an_address_that_is_none_is_refused(home: Path) -> None:
    done = await run_process(
        [*CHAT, "--home", str(home), "--url", "localhost:1", "--once", "hi"], check=False
    )

    assert done.returncode == 78
    assert b"is not an address" in done.stderr


@pytest.mark.parametrize("has_home", [True, False])
async def test_without_a_gateway_it_says_how_to_start_one_and_goes_on_trying(
    home: Path, has_home: bool
) -> None:
    where = home if has_home else home / "not" / "made"
    with terminal("--home", str(where), "--url", NOBODY) as (process, press, seen):
        await until(lambda: "koboshi run" in seen())
        assert process.poll() is None
        press(b"hello\r\x04")
        await until(lambda: process.poll() is not None)

    assert process.returncode == 0
    assert seen().count("koboshi run") == 1
    assert "not sent: hello" in seen()


@pytest.mark.parametrize("key", [b"\x04", b"\x03"], ids=["Ctrl-D", "Ctrl-C"])
async def test_a_person_at_a_terminal_talks_and_leaves(
    gateway: FakeGateway, home: Path, key: bytes
) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url:
        with terminal("--home", str(home), "--url", url) as (process, press, seen):
            press(b"hello\r")
            await until(lambda: "you said hello" in seen())
            press(key)
            await until(lambda: process.poll() is not None)

    assert process.returncode == 0
    assert seen().count("you said hello") == 1
    assert "> hello" not in seen()


async def test_keys_between_two_lines_are_not_lost() -> None:
    """While no line is asked for, the terminal must not take a Ctrl-D for itself."""
    ours, theirs = pty.openpty()
    with (
        os.fdopen(ours, "wb", buffering=0) as keyboard,
        os.fdopen(theirs) as stdin,
        create_app_session(input=create_input(stdin), output=DummyOutput()),
    ):
        async with aclosing(TerminalScreen(Path(os.devnull), has_color=False).lines()) as lines:
            keyboard.write(b"hello\r")
            with fail_after(WITHIN_S):
                assert await anext(lines) == "hello"
            keyboard.write(b"\x04")
            with fail_after(WITHIN_S):
                assert [line async for line in lines] == []

        assert termios.tcgetattr(stdin)[3] & termios.ICANON, "it is as it was"


async def test_a_pipe_that_stays_open_does_not_hold_up_the_exit(home: Path) -> None:
    """The thread that reads is stuck in a read; no caller waits for it."""
    async with await open_process(
        [*CHAT, "--home", str(home), "--url", NOBODY], stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert b"koboshi run" in await process.stderr.receive()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


def test_lines_are_read_whatever_their_bytes() -> None:
    read, write = os.pipe()
    os.write(write, b"one\r\ntwo \xff\n\nlast \xc3")
    os.close(write)

    assert list(lines_of(read)) == ["one", "two \ufffd", "", "last \ufffd"]
    os.close(read)


@contextmanager
def terminal(
    *options: str,
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[bytes], int], Callable[[], str]]]:
    """The program in a terminal of its own: a process, its keyboard, and its screen so far."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    screen = bytearray()

    def seen() -> str:
        # An error says: nothing more for now, or the other side has closed.
        with suppress(OSError):
            while piece := os.read(ours, 65_536):
                screen.extend(piece)
        return screen.decode(errors="replace")

    process = subprocess.Popen(
        [*CHAT, *options],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    with process:
        try:
            yield process, lambda keys: os.write(ours, keys), seen
        finally:
            process.kill()
            seen()
            os.close(ours)


async def test_one_message_without_a_gateway_ends_with_the_reason(home: Path) -> None:
    """Issue 13, B13: it does not wait for ever; the code is not 0, and what helps is said."""
    done = await run_process(
        [*CHAT, "--home", str(home), "--url", NOBODY, "--wait", "0.5", "--once", "hi"],
        stdin=subprocess.DEVNULL,
        check=False,
    )

    assert done.returncode == 1
    assert done.stdout == b""
    said = done.stderr.decode()
    assert f"no gateway answered at {NOBODY} within 0.5 s" in said
    assert "koboshi run" in said
    assert "not sent: hi" in said


async def test_lines_without_a_gateway_end_with_the_reason(home: Path) -> None:
    """Issue 13, B13: a pipe has no one who could leave, either."""
    done = await run_process(
        [*CHAT, "--home", str(home), "--url", NOBODY, "--wait", "0.5"],
        input=b"eins\n",
        check=False,
    )

    assert done.returncode == 1
    assert b"no gateway answered" in done.stderr


async def test_one_message_is_not_waited_for_without_a_limit_by_default() -> None:
    """Issue 13, B13: no one has to ask for a limit."""
    (wait,) = (option for option in chat.params if option.name == "wait_s")

    assert wait.default == 30.0
