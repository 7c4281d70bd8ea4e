"""Voice messages written down: tried again while the service is busy, and each try is billed.

A try reserves what the recording is reckoned to cost, as every billed call does. A kill in the
middle leaves the reservation, which counts as spent.
"""

from dataclasses import dataclass, replace

import structlog
from anyio import CancelScope, sleep

from koboshi.domain.speech import SpeechUse, reckoned, speech_amount
from koboshi.domain.turn import Claim
from koboshi.ports.transcriber import NotTranscribed, Transcriber, Transcript
from koboshi.runtime.billing import Billing

log = structlog.get_logger()

TRIES = 3
PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dictation:
    transcriber: Transcriber
    model: str = ""
    """By what name it is billed, and told in `/usage`."""
    billing: Billing | None = None
    """None: there is no budget, or nothing is paid for it."""
    minute_price: float | None = None
    """In dollars; None: it is not known."""

    async def written(self, claim: Claim, name: str, content: bytes) -> Transcript:
        """What is said, and what that took; the length is reckoned if the service does not say it.
        Raises NotTranscribed, and OverBudget if it may not be asked for today."""
        tried = 0
        while True:
            tried += 1
            try:
                heard = await self._billed(claim, name, content)
                seconds = reckoned(content).seconds if heard.seconds is None else heard.seconds
                return replace(heard, seconds=seconds)
            except NotTranscribed as error:
                if not error.may_work_later or tried == TRIES:
                    raise
                log.info("transcription_tried_again", why=str(error), tried=tried)
                await sleep(PAUSE_SECONDS)

    async def _billed(self, claim: Claim, name: str, content: bytes) -> Transcript:
        if self.billing is None or self.minute_price == 0:
            return await self.transcriber.transcribe(name, content)
        use = reckoned(content)
        bill = await self.billing.reserve_amount(
            claim.session_id, claim.turn_id, self.model, self._amount(self.billing, use)
        )
        paid: int | None = None
        try:
            heard = await self.transcriber.transcribe(name, content)
            seconds = use.seconds if heard.seconds is None else heard.seconds
            if heard.seconds is not None or heard.tokens:
                paid = self._amount(self.billing, SpeechUse(seconds=seconds, tokens=heard.tokens))
            return heard
        except NotTranscribed as error:
            paid = 0 if error.is_free else None
            raise
        finally:
            with CancelScope(shield=True):
                await self.billing.budget.settle(bill, paid)

    def _amount(self, billing: Billing, use: SpeechUse) -> int:
        return speech_amount(billing.unit, use, self.minute_price, billing.unpriced)
