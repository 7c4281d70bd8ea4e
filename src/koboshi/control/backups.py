"""Backups, as the owner of the home is asked for them."""

from koboshi.control.replies import BackupReply, Done, refusal
from koboshi.control.requests import CreateBackup, GetBackup
from koboshi.ports.store import Store

KEPT = 14
"""Backups that are kept in the home, unless the caller wants more or fewer."""


def answer(store: Store, request: CreateBackup | GetBackup) -> Done:
    match request:
        case CreateBackup(what=file, keep=keep):
            return begun(store, file, keep)
        case GetBackup():
            return standing(store)


def begun(store: Store, to: str, keep: int | None) -> Done:
    """Begin one. It takes longer than an answer may; `standing` tells how it goes."""
    wanted = keep if keep is not None and keep >= 0 else KEPT
    if not store.backups.begin(to, wanted):
        return refusal("refused", "a backup is being made already; wait for it")
    return standing(store)


def standing(store: Store) -> Done:
    """How far the newest one is."""
    found = store.backups.standing()
    if found is None:
        return refusal("not-found", "no backup was begun since this gateway started")
    return BackupReply(backup=found)
