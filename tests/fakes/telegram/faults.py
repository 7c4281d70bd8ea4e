"""What is to go wrong, for which requests, and how often."""

import itertools
from dataclasses import dataclass, field
from enum import StrEnum


class Act(StrEnum):
    """What happens to a request that a fault hits."""

    WAIT = "wait"  # it takes `seconds` longer
    HANG = "hang"  # nothing happens until the fault is lifted
    DROP = "drop"  # the connection ends without an answer
    STATUS = "status"  # it is answered with `status`
    GARBLE = "garble"  # the answer is not JSON
    TOO_MANY = "too_many"  # 429, to be repeated after `seconds`


class Moment(StrEnum):
    """Before the platform has done what it was asked to, or when it has."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(slots=True, kw_only=True, eq=False)
class Fault:
    fault_id: int
    act: Act
    moment: Moment = Moment.BEFORE
    method: str | None = None
    """None: any."""
    chat: int | str | None = None
    """None: any."""
    count: int | None = 1
    """How many requests it hits; None: all until it is lifted."""
    skip: int = 0
    """How many requests it lets pass first."""
    seconds: float = 0
    status: int = 502
    description: str = ""
    hits: int = 0
    is_lifted: bool = False

    def is_for(self, method: str, chat: int | str | None) -> bool:
        if self.is_lifted or (self.count is not None and self.hits >= self.count):
            return False
        if self.method is not None and self.method.lower() != method:
            return False
        return self.chat is None or self.chat == chat

    def lift(self) -> None:
        self.is_lifted = True


@dataclass(slots=True)
class Faults:
    all: list[Fault] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def add(
        self,
        act: Act | str,
        method: str | None = None,
        *,
        moment: Moment | str = Moment.BEFORE,
        chat: int | str | None = None,
        count: int | None = 1,
        skip: int = 0,
        seconds: float = 0,
        status: int = 502,
        description: str = "",
    ) -> Fault:
        fault = Fault(
            fault_id=next(self._numbers),
            act=Act(act),
            moment=Moment(moment),
            method=method,
            chat=chat,
            count=count,
            skip=skip,
            seconds=seconds,
            status=status,
            description=description,
        )
        self.all.append(fault)
        return fault

    def outage(self, act: Act | str = Act.DROP) -> Fault:
        """No method works until this is lifted."""
        return self.add(act, count=None)

    def lift_all(self) -> None:
        for fault in self.all:
            fault.lift()
        self.all.clear()

    def next_for(self, method: str, chat: int | str | None) -> Fault | None:
        """The fault that hits this request; it is counted."""
        for fault in self.all:
            if fault.is_for(method, chat):
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.hits += 1
                return fault
        return None
