"""A unit that gives a stop less time than the drain wants: 5 s where `drain_seconds` is 45."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.systemd.machine import (
    UNIT,
    Machine,
    UnitGateway,
    installed,
    installed_for_user,
    only_by_itself,
)

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(120), only_by_itself]

SHORT = "Environment=KOBOSHI__GATEWAY__DRAIN_SECONDS=45\nTimeoutStopSec=5\n"
SILENT = "Type=exec\nNotifyAccess=none\nWatchdogSec=0\nFileDescriptorStoreMax=0\n"
"""As a person would write a unit who does not know of sd_notify. With a store of descriptors or a
watchdog, systemd would listen all the same."""
STEP_S = 8
"""A step that ends within the drain, and not within the limit."""


@pytest.fixture
def one(machine: Machine, request: pytest.FixtureRequest) -> Iterator[UnitGateway]:
    is_user, besides = request.param
    made = (installed_for_user if is_user else installed)(machine, SHORT + besides)
    try:
        made.start()
        made.wait_serving()
        yield made
    finally:
        made.bury()


def stopped_in_the_middle(one: UnitGateway, step_s: int = STEP_S) -> str:
    step = {"sleep_ms": step_s * 1_000, "text": "slept"}
    message = one.say("a", f"script: {json.dumps([step])}")
    one.wait_state(message, "running")
    one.systemctl("stop", UNIT)
    return message


@pytest.mark.parametrize("one", [(False, ""), (True, "")], ids=["system", "user"], indirect=True)
def test_a_drain_that_can_ask_gets_its_time(one: UnitGateway) -> None:
    message = stopped_in_the_middle(one)

    assert (one.shown("ActiveState"), one.shown("Result")) == ("inactive", "success")
    one.start()
    told = one.wait_state(message, "done")
    assert told["turn"]["recoveries"] == 0, "the step was finished before the end"


@pytest.mark.parametrize("one", [(True, SILENT)], ids=["user"], indirect=True)
def test_a_drain_that_cannot_ask_shrinks_to_the_limit(one: UnitGateway) -> None:
    """A user's service may ask what its unit says."""
    message = stopped_in_the_middle(one)

    assert (one.shown("ActiveState"), one.shown("Result")) == ("inactive", "success")
    one.start()
    assert [each["text"] for each in one.wait_state(message, "done")["deliveries"]][-1] == "slept"


@pytest.mark.parametrize("one", [(False, SILENT)], ids=["system"], indirect=True)
def test_a_drain_that_does_not_know_the_limit_is_killed_and_recovered(one: UnitGateway) -> None:
    """Seed 003. A system service without rights cannot ask where there is no bus."""
    message = stopped_in_the_middle(one)
    for longer in (2, 3):
        if one.shown("Result") == "timeout":
            break
        # The machine is so slow that the stop came when the step was nearly over.
        one.start()
        one.wait_serving(times=longer)
        message = stopped_in_the_middle(one, STEP_S * longer)

    assert (one.shown("ActiveState"), one.shown("Result")) == ("failed", "timeout"), one.why()
    assert one.shown("ExecMainStatus") == str(int(signal.SIGKILL))
    one.start()
    told = one.wait_state(message, "done")
    assert told["turn"]["recoveries"] == 1
    assert [each["text"] for each in told["deliveries"]][-1] == "slept"
