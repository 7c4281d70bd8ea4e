"""What a command sets: for its chat, for today's budget, for a process."""

from koboshi.domain.command import Response
from koboshi.domain.ids import SessionId
from koboshi.kernel.context import VerbContext
from koboshi.kernel.purses import allow_more
from koboshi.kernel.record import ask_end
from koboshi.kernel.sessions import set_session
from koboshi.kernel.transaction import Transaction


def change_settings(
    tx: Transaction, context: VerbContext, session_id: SessionId, response: Response
) -> None:
    if response.settings is not None:
        set_session(tx, session_id, response.settings)
    if response.allows is not None:
        allow_more(tx, context, *response.allows)
    if response.end_process is not None:
        ask_end(tx, response.end_process)
