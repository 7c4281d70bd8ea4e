"""The verbs of browsers that were let in."""

from koboshi.domain.browser import BROWSERS_MAX, IDLE_MS, LIFE_MS, Browser, BrowserId
from koboshi.kernel.decode import number, text
from koboshi.kernel.transaction import Readers, Reading, Row, Transaction, Writer


class BrowserVerbs:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def make(self, *, cookie_hash: str, proof_hash: str, label: str) -> Browser:
        def operation(tx: Transaction) -> Browser:
            browser_id = tx.insert(
                "browser_insert",
                cookie_hash=cookie_hash,
                proof_hash=proof_hash,
                label=label,
                now=tx.now_ms,
                expires_ms=tx.now_ms + LIFE_MS,
            )
            tx.change("browsers_give_way", now=tx.now_ms, idle_ms=IDLE_MS, kept=BROWSERS_MAX)
            # Who is out for as long as anyone may stay in is not told of any more.
            tx.change("browsers_forget", before_ms=tx.now_ms - LIFE_MS, browser_id=browser_id)
            row = tx.row("browser_by_id", browser_id=browser_id)
            assert row is not None
            return _browser_of(row)

        return await self._writer.write("browsers.make", operation)

    async def offer(self, code_hash: str, *, life_ms: int, kept: int) -> None:
        def operation(tx: Transaction) -> None:
            expires_ms = tx.now_ms + life_ms
            tx.change("login_code_offer", code_hash=code_hash, expires_ms=expires_ms)
            tx.change("login_codes_forget", now=tx.now_ms, kept=kept)

        await self._writer.write("browsers.offer", operation)

    async def redeem(self, code_hash: str) -> bool:
        def operation(tx: Transaction) -> bool:
            return bool(tx.change("login_code_redeem", code_hash=code_hash, now=tx.now_ms))

        return await self._writer.write("browsers.redeem", operation)

    async def find(self, cookie_hash: str) -> tuple[Browser, str] | None:
        def look(tx: Reading) -> tuple[Browser, str] | None:
            row = tx.row(
                "browser_by_cookie", cookie_hash=cookie_hash, now=tx.now_ms, idle_ms=IDLE_MS
            )
            return None if row is None else (_browser_of(row[:-1]), text(row[-1]))

        return await self._readers.read(look)

    async def use(self, browser_id: BrowserId) -> None:
        await self._writer.write(
            "browsers.use",
            lambda tx: tx.change("browser_use", browser_id=browser_id, now=tx.now_ms),
        )

    async def revoke(self, browser_id: BrowserId) -> bool:
        def operation(tx: Transaction) -> bool:
            place = {"browser_id": browser_id, "now": tx.now_ms, "idle_ms": IDLE_MS}
            return bool(tx.change("browser_revoke", **place))

        return await self._writer.write("browsers.revoke", operation)

    async def revoke_all(self) -> int:
        return await self._writer.write(
            "browsers.revoke_all",
            lambda tx: tx.change("browsers_revoke_all", now=tx.now_ms, idle_ms=IDLE_MS),
        )

    async def listed(self) -> tuple[Browser, ...]:
        def look(tx: Reading) -> tuple[Browser, ...]:
            rows = tx.rows("browsers_let_in", now=tx.now_ms, idle_ms=IDLE_MS)
            return tuple(_browser_of(row) for row in rows)

        return await self._readers.read(look)


def _browser_of(row: Row) -> Browser:
    browser_id, label, made_ms, used_ms, expires_ms, revoked_ms = row
    return Browser(
        browser_id=BrowserId(number(browser_id)),
        label=text(label),
        made_ms=number(made_ms),
        used_ms=number(used_ms),
        expires_ms=number(expires_ms),
        revoked_ms=None if revoked_ms is None else number(revoked_ms),
    )
