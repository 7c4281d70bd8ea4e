"""What a service manager is told, and that nothing about telling can harm."""

import os
import signal
import socket
from pathlib import Path

import anyio
import pytest

from koboshi.runtime.notify import Notifier
from koboshi.runtime.status_notifier import keep_feeding, recovering_words, serving_words
from tests.cli.process import gateway, koboshi, starting, until
from tests.harness.polling import until as until_heard
from tests.service.listening import ear

PID = 4242


@pytest.mark.parametrize("is_abstract", [False, True])
def test_every_message_arrives_as_systemd_expects_it(tmp_path: Path, is_abstract: bool) -> None:
    address = f"@koboshi-test-{os.getpid()}-{tmp_path.name}" if is_abstract else ""
    with ear(tmp_path, address) as manager:
        notifier = Notifier(address=manager.address)
        notifier.ready()
        notifier.ready()
        notifier.status("3 turns\nWATCHDOG=1\trunning")
        notifier.status("3 turns WATCHDOG=1 running")
        notifier.extend(1.5)
        notifier.alive()
        notifier.stopping()

        assert manager.heard() == [
            "READY=1",
            "STATUS=3 turns WATCHDOG=1 running",
            "EXTEND_TIMEOUT_USEC=1500000",
            "WATCHDOG=1",
            "STOPPING=1",
        ]


@pytest.mark.parametrize("address", ["", "/nowhere/at/all", "@not-listened-to", "/" + "x" * 200])
def test_a_manager_that_is_not_there_does_no_harm(address: str) -> None:
    notifier = Notifier(address=address)
    for _ in range(3):
        notifier.ready()
        notifier.alive()
        notifier.status("fine")
        notifier.extend(float("inf"))
        notifier.stopping()


def test_a_manager_that_does_not_read_is_not_waited_for_and_learns_it_later(tmp_path: Path) -> None:
    with ear(tmp_path) as manager:
        notifier = Notifier(address=manager.address)
        fill(manager.address)

        notifier.ready()

        assert "READY=1" not in manager.heard()
        notifier.alive()
        assert manager.heard()[-2:] == ["READY=1", "WATCHDOG=1"]


def fill(address: str) -> None:
    """Send until the queue takes no more. Each with its own socket, whose own buffer is empty."""
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
            link.setblocking(False)
            try:
                link.sendto(b"noise", address)
            except BlockingIOError:
                return


def test_a_status_that_was_not_heard_is_said_again(tmp_path: Path) -> None:
    notifier = Notifier(address=str(tmp_path / "notify"))
    notifier.status("fine")
    with ear(tmp_path) as manager:
        notifier.status("fine")

        assert manager.heard() == ["STATUS=fine"]


@pytest.mark.parametrize(
    "variables, seconds",
    [
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(PID)}, 2.0),
        ({"WATCHDOG_USEC": "500000"}, 0.5),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({}, None),
    ],
)
def test_a_watchdog_is_fed_only_if_it_waits_for_this_process(
    variables: dict[str, str], seconds: float | None
) -> None:
    environ = {"NOTIFY_SOCKET": "/run/notify", "PATH": "/bin", **variables}

    assert Notifier.taken_from(environ, PID).watchdog_seconds == seconds
    assert environ == {"PATH": "/bin"}, "nothing is left for the programs we start"


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1234"])
def test_an_address_of_another_kind_is_none(address: str) -> None:
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1"}

    assert Notifier.taken_from(environ, PID) == Notifier()


async def test_one_bad_look_does_not_starve_the_watchdog_for_good(tmp_path: Path) -> None:
    looks = iter([True, False, False, True])

    def is_alive() -> bool:
        return next(looks, True)

    with ear(tmp_path) as manager:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_feeding, Notifier(address=manager.address), is_alive, 0.05)
            await until_heard(lambda: len(manager.heard()) >= 3 or None, "it is fed again")
            tasks.cancel_scope.cancel()


async def test_an_unhealthy_gateway_starves_the_watchdog(tmp_path: Path) -> None:
    with ear(tmp_path) as manager:
        with anyio.move_on_after(0.3):
            await keep_feeding(Notifier(address=manager.address), lambda: False, 0.01)

        assert manager.heard() == []


def test_words_about_a_gateway() -> None:
    assert recovering_words(3) == "recovering 3 turns"
    assert recovering_words(1) == "recovering 1 turn"
    assert recovering_words(0) == "looking at what the last boot left behind"
    assert serving_words(0, 0) == "idle, ready for messages"
    assert serving_words(1, 2) == "1 turn running, 2 messages waiting"


# ── a real gateway ──────────────────────────────────────────────────────────────────────────────


def test_ready_is_said_when_a_message_can_be_accepted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ear(tmp_path) as manager, gateway(home, NOTIFY_SOCKET=manager.address) as one:
        manager.wait_for("READY=1")
        one.wait_state(one.say("a", "hello"), "done")
        manager.wait_for("STATUS=idle, ready for messages")

        assert one.stop() == 0

        told = manager.heard()
        assert told.count("READY=1") == 1
        assert told.count("STOPPING=1") == 1
        assert told.index("READY=1") < told.index("STOPPING=1")
        assert told[-1] == "STATUS=stopping", "nothing is described over the stop's own words"


def test_a_frozen_gateway_starves_the_watchdog(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        ear(tmp_path) as manager,
        gateway(home, NOTIFY_SOCKET=manager.address, WATCHDOG_USEC="200000") as one,
    ):
        manager.wait_for("WATCHDOG=1", times=3)
        one.signal(signal.SIGSTOP)
        fed = manager.heard().count("WATCHDOG=1")
        with pytest.raises(AssertionError, match="not within"):
            until(lambda: manager.heard().count("WATCHDOG=1") > fed + 1, "fed", within_s=1)

        one.signal(signal.SIGCONT)

        manager.wait_for("WATCHDOG=1", times=fed + 3)


def test_commands_do_not_inherit_the_right_to_speak(tmp_path: Path) -> None:
    home = tmp_path / "home"
    work = tmp_path / "work"
    shown = work / "shown"
    env = {"WATCHDOG_USEC": "9000000", "KOBOSHI__GATEWAY__WORKDIR": str(work)}
    with (
        ear(tmp_path) as manager,
        gateway(home, NOTIFY_SOCKET=manager.address, **env) as one,
    ):
        one.wait_state(one.say("a", f"run env > {shown}"), "done")
        runner_and_below = shown.read_text()

    assert "PATH=" in runner_and_below
    assert "NOTIFY" not in runner_and_below
    assert "WATCHDOG" not in runner_and_below


def test_a_dead_socket_does_not_keep_it_from_serving(tmp_path: Path) -> None:
    with gateway(tmp_path / "home", NOTIFY_SOCKET=str(tmp_path / "gone")) as one:
        one.wait_state(one.say("a", "hello"), "done")

        assert len(one.events("service_notify_failed")) == 1, "noted once"
        assert one.stop() == 0


def test_under_a_service_manager_there_is_no_second_parent(tmp_path: Path) -> None:
    """The manager listens to the process it started; a child of that would not be heard."""
    home = tmp_path / "home"
    with (
        ear(tmp_path) as manager,
        starting(home, "--supervise", NOTIFY_SOCKET=manager.address) as one,
    ):
        manager.wait_for("READY=1")

        assert "--supervise is left to it" in one.err
        assert koboshi("status", "--json", home=home).document["worker"]["pid"] == one.pid
        assert one.stop() == 0
