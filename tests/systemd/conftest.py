"""One machine for all tests of a process, and a fresh gateway for each."""

from collections.abc import Callable, Iterator

import pytest

from tests.cli.process import KOBOSHI
from tests.systemd.machine import Machine, UnitGateway, installed, why_not

Install = Callable[..., UnitGateway]


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    reason = why_not()
    if reason:
        pytest.skip(f"no systemd can be booted here: {reason}")
    one = Machine()
    try:
        yield one
    finally:
        one.switch_off()


@pytest.fixture
def install(machine: Machine) -> Iterator[Install]:
    """Installs the unit, with a drop-in if one is given."""
    made: list[UnitGateway] = []

    def make(besides: str = "", *arguments: str, program: str = KOBOSHI) -> UnitGateway:
        made.append(installed(machine, besides, *arguments, program=program))
        return made[-1]

    yield make
    for one in made:
        one.bury()
