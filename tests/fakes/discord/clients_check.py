"""Checks the fake against two clients that we did not write: discord.py and hikari.

Run by the interpreter of `.venv-discord-clients`: `-m tests.fakes.discord.clients_check <url>
<gateway url> <token>`. Prints one line for each check, and ends with 1 if one of them failed.
"""

import asyncio
import logging
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial

from tests.fakes.discord import dpy_check, hikari_check
from tests.fakes.telegram.remote import Remote

CHECK_S_MAX = 30.0
Check = Callable[[], Awaitable[None]]


async def passes(name: str, check: Check) -> bool:
    try:
        async with asyncio.timeout(CHECK_S_MAX):
            await check()
    except Exception:
        print(f"failed {name}: {traceback.format_exc(limit=-4)}".replace("\n", " | "), flush=True)
        return False
    print(f"ok {name}", flush=True)
    return True


async def check_all(url: str, gateway: str, token: str) -> bool:
    results = []
    async with dpy_check.a_client(Remote(url), url, gateway, token) as stage:
        for each in dpy_check.CHECKS:
            results.append(await passes(f"discord.py {each.__name__}", partial(each, stage)))
    async with hikari_check.a_client(Remote(url), url, token) as other:
        for its in hikari_check.CHECKS:
            results.append(await passes(f"hikari {its.__name__}", partial(its, other)))
    return all(results)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    sys.exit(0 if asyncio.run(check_all(*sys.argv[1:4])) else 1)
