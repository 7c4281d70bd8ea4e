"""What a start does on a database that went back in time: it holds all owed deliveries, because
they may have arrived, before anything can be sent.

Two things tell that. The database knows which server it was on last: another one whose predecessor
did not wait for a standby may lack its end. And each home has a witness, a small file that tells
how far the database had come at the last beat of a gateway there; as beside a file of SQLite, it is
no truth, and without it everything goes on.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from anyio import CapacityLimiter, to_thread

from koboshi.domain.resource_exhaustion import shortage_in
from koboshi.domain.witness import Reached, Witness, gap_words, is_behind
from koboshi.kernel.decode import number, text
from koboshi.kernel.deliveries import hold_after_going_back
from koboshi.kernel.keys import lock_found
from koboshi.kernel.transaction import Reading, Transaction
from koboshi.stores.postgres.reach import ServerReach, went_back

WITNESS_NAME = "server-witness.json"
PART_NAME = f"{WITNESS_NAME}.part"
BYTES_MAX = 4_096
NUMBER_MAX = 2**62
"""What a database can be asked for."""
PROCESSES_NAME, QUARANTINE_NAME = "processes", "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWitness:
    """What was seen, and of which database."""

    database_id: str
    seen: Witness


def read_witness(home: Path) -> ServerWitness | None:
    """What the witness of a home tells; None if there is none, or none that can be one of ours."""
    try:
        with (home / WITNESS_NAME).open("rb") as file:
            found = msgspec.json.decode(file.read(BYTES_MAX), type=ServerWitness)
    except (OSError, ValueError):
        return None
    numbers = (found.seen.journal, found.seen.boot, found.seen.at_ms)
    return found if all(0 <= each < NUMBER_MAX for each in numbers) else None


def write_witness(home: Path, witness: ServerWitness) -> None:
    """Replace the witness: the new one is whole on the disk before it gets the name. Raises OSError
    with the old one still there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(home / PART_NAME, flags, 0o600), "wb") as file:
        file.write(msgspec.json.encode(witness))
        file.flush()
        os.fsync(file.fileno())
    os.replace(home / PART_NAME, home / WITNESS_NAME)


class ServerWitnessFile:
    """The witness of a home whose store is open. It is written where there is something new."""

    def __init__(self, home: Path, database_id: str) -> None:
        self._home = home
        self._database_id = database_id
        self._told: tuple[int, int] | None = None

    async def tell(self, witness: Witness) -> None:
        """In a thread: a disk may take its time."""
        try:
            await to_thread.run_sync(self._tell, witness, limiter=CapacityLimiter(1))
        except RuntimeError as error:
            # Without a thread the old witness stays, which is as true as before.
            if shortage_in(error) is None:
                raise

    def _tell(self, witness: Witness) -> None:
        news = (witness.boot, witness.journal)
        if news == self._told:
            return
        with suppress(OSError):  # the old one is as true as before
            write_witness(self._home, ServerWitness(database_id=self._database_id, seen=witness))
            self._told = news


@dataclass(frozen=True, slots=True)
class LookedBack:
    """What a start has said of the past, and how it is witnessed from now on."""

    warnings: tuple[str, ...] = ()
    witness: ServerWitnessFile | None = None


@dataclass(frozen=True, slots=True)
class PastFound:
    """What a start found out about the database."""

    database_id: str
    gap: str | None
    """What is gone, in words for the operator, until the operator has decided."""
    newest_process: int


def notice(witness: ServerWitness | None, reach: ServerReach, tx: Transaction) -> PastFound:
    """Hold all owed deliveries where the database may have gone back, once for each cause, and know
    its server from now on."""
    row = tx.row("server_known")
    assert row is not None
    database_id, before, loses_none = text(row[0]), text(row[1]), bool(row[2])
    if before and reach.server and before != reach.server and not loses_none:
        _hold(tx, f"server:{before}:{reach.server}", went_back(before, reach.server))
    if witness is not None and witness.database_id == database_id:
        seen, reached = witness.seen, _reached(tx, witness.seen)
        if is_behind(seen, reached):
            _hold(tx, f"witness:{seen.boot}/{seen.birth}/{seen.journal}", gap_words(seen, reached))
    tx.change("server_note", server=reach.server or before)
    gap = tx.row("gap_open")
    return PastFound(
        database_id, None if gap is None else text(gap[0]), tx.number("newest_process")
    )


def _hold(tx: Transaction, cause: str, words: str) -> None:
    lock_found(tx, "keys_of_ages")
    if tx.change("hold_insert", cause=cause, gap=words, now=tx.now_ms):
        hold_after_going_back(tx, "held: the database went back")


def _reached(tx: Reading, seen: Witness) -> Reached:
    newest = tx.row("journal_newest_line")
    known = tx.row("worker_known", worker_id=seen.boot, birth=seen.birth)
    return Reached(
        journal=0 if newest is None else number(newest[0]),
        at_ms=0 if newest is None else number(newest[1]),
        knows_boot=known is not None,
    )


def set_processes_aside(home: Path, newest: int, stamp: str) -> None:
    """Folders of processes that the database does not know any more: it will give their ids to
    others, which must not find an end that is not theirs. As a rule there are none, because the
    row of a process is older than its folder."""
    folders = [each for each in (home / PROCESSES_NAME).glob("*") if each.name.isdecimal()]
    unknown = [each for each in folders if int(each.name) > newest]
    if not unknown:
        return
    aside = home / QUARANTINE_NAME / stamp / PROCESSES_NAME
    aside.mkdir(parents=True, mode=0o700, exist_ok=True)
    for folder in unknown:
        os.rename(folder, aside / folder.name)
