"""What went wrong with a model, and whether another one is asked instead. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class ModelTrouble(StrEnum):
    """Why a model gave no reply."""

    BUSY = "busy"  # it takes no more requests of ours for now
    OVERLOADED = "overloaded"  # it has too much to do
    FAILED = "failed"  # the provider has an error, or broke off
    QUOTA = "quota"  # the credit there is spent
    UNREACHABLE = "unreachable"  # no connection from this machine
    KEY = "key"  # the key or the model's name is not accepted
    CONTENT = "content"  # it will not answer this
    SIZE = "size"  # the request is too long for it
    OURS = "ours"  # the gateway itself was not ready to ask


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleRule:
    """What follows a trouble. A model that is left for the next one is benched: first for
    `first_ms`, and longer each time, up to `longest_ms`."""

    is_passed_on: bool
    is_of_node: bool = False
    """The bench counts on the node that noticed it, and nowhere else."""
    is_lasting: bool = False
    """Waiting does not help: if all models have such a trouble, the turn ends at once."""
    first_ms: int = 0
    longest_ms: int = 0


_MINUTE_MS = 60_000
_PASSING = TroubleRule(is_passed_on=True, first_ms=15_000, longest_ms=_MINUTE_MS)
_STAYS = TroubleRule(is_passed_on=False)

TROUBLE_RULES: Mapping[ModelTrouble, TroubleRule] = MappingProxyType(
    {
        ModelTrouble.BUSY: _PASSING,
        ModelTrouble.OVERLOADED: _PASSING,
        ModelTrouble.FAILED: _PASSING,
        ModelTrouble.UNREACHABLE: TroubleRule(
            is_passed_on=True, is_of_node=True, first_ms=15_000, longest_ms=_MINUTE_MS
        ),
        ModelTrouble.QUOTA: TroubleRule(
            is_passed_on=True,
            is_lasting=True,
            first_ms=10 * _MINUTE_MS,
            longest_ms=60 * _MINUTE_MS,
        ),
        ModelTrouble.KEY: TroubleRule(
            is_passed_on=True, is_lasting=True, first_ms=_MINUTE_MS, longest_ms=10 * _MINUTE_MS
        ),
        ModelTrouble.CONTENT: _STAYS,
        ModelTrouble.SIZE: _STAYS,
        ModelTrouble.OURS: _STAYS,
    }
)


def trouble_of_status(status: int | None, *, is_refusal: bool) -> ModelTrouble:
    """What a status says, where nothing else is known of a failure."""
    match status:
        case 402:
            return ModelTrouble.QUOTA
        case 401 | 403 | 404:
            return ModelTrouble.KEY
        case 413:
            return ModelTrouble.SIZE
        case _ if is_refusal:
            return ModelTrouble.CONTENT
        case 429:
            return ModelTrouble.BUSY
        case 529:
            return ModelTrouble.OVERLOADED
        case _:
            return ModelTrouble.FAILED
