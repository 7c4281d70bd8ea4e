"""The browsers that are let in, as the owner of the home is asked about them."""

from koboshi.control.replies import (
    BrowserList,
    BrowserRevoked,
    BrowserRow,
    Done,
    Refusal,
    refusal,
)
from koboshi.control.requests import ListBrowsers, RevokeBrowser
from koboshi.domain.browser import BrowserId
from koboshi.domain.ids import parse_shown, shown
from koboshi.ports.store import Store

ALL = "all"


async def answer(store: Store, request: ListBrowsers | RevokeBrowser) -> Done:
    match request:
        case ListBrowsers():
            return await listed(store)
        case RevokeBrowser(what=browser):
            return await revoke(store, browser)


async def listed(store: Store) -> BrowserList:
    return BrowserList(
        browsers=tuple(
            BrowserRow(
                browser=shown("browser", each.browser_id),
                label=each.label,
                made_ms=each.made_ms,
                used_ms=each.used_ms,
                expires_ms=each.expires_ms,
            )
            for each in await store.browsers.listed()
        )
    )


async def revoke(store: Store, what: str) -> BrowserRevoked | Refusal:
    """Log one browser out, or all of them."""
    if what == ALL:
        return BrowserRevoked(browser=ALL, count=await store.browsers.revoke_all())
    named = parse_shown(what)
    is_named = named is not None and named[0] == "browser"
    if named is not None and is_named and await store.browsers.revoke(BrowserId(named[1])):
        return BrowserRevoked(browser=what, count=1)
    words = f'no browser "{what}" is let in; `koboshi browsers list` shows them, as b1'
    return refusal("not-found", words)
