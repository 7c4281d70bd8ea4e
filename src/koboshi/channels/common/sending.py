"""What a failed request means for a delivery, on every platform: whether it was certainly not sent,
or nothing is known."""

import errno
from collections.abc import Awaitable

from koboshi.channels.common.calls import NoAnswer, NotReached
from koboshi.domain.outbox import Delivery, Later, Refused, SendOutcome, Unsure
from koboshi.domain.resource_exhaustion import shortage_in

PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EINTR})
"""Errors that say nothing about the file: it can be read later."""


async def outcome_of_sending(delivery: Delivery, sending: Awaitable[SendOutcome]) -> SendOutcome:
    """The outcome of `sending`, which reads the file of the delivery before it asks anything."""
    try:
        return await sending
    except NotReached as error:
        missing = shortage_in(error)
        reason = f"not reached: {missing or error}"
        return Later(wait_ms=0, reason=reason, is_lack=missing is not None)
    except NoAnswer as error:
        return Unsure(reason=str(error))
    except OSError as error:  # before anything was sent: it is a file of ours
        if delivery.file is None or error.errno in PASSING:
            is_lack = shortage_in(error) is not None
            return Later(wait_ms=0, reason=f"not now: {error.strerror}", is_lack=is_lack)
        return Refused(reason=f"the file cannot be read: {error.strerror}")


def not_looked_for(error: Exception) -> Unsure:
    """The platform could not be asked whether it has the delivery."""
    missing = shortage_in(error)
    reason = f"it cannot be looked for: {missing or error}"
    return Unsure(reason=reason, is_lack=missing is not None, was_sent=False)
