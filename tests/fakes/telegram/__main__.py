"""The fake as a program: `python -m tests.fakes.telegram --port 8081`. Ends when told to."""

import argparse
import asyncio
import signal

from tests.fakes.telegram.server import TOKEN, serving
from tests.fakes.telegram.world import World


async def serve(world: World, port: int, token: str) -> None:
    is_over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, is_over.set)
    async with serving(world, token=token, port=port) as fake:
        print(f"telegram: {fake.url}", flush=True)
        await is_over.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=0, help="0: any free one; it is printed")
    options.add_argument("--token", default=TOKEN)
    options.add_argument("--topics", action="store_true", help="private chats have topics")
    chosen = options.parse_args()
    world = World(has_topics_enabled=chosen.topics)
    asyncio.run(serve(world, chosen.port, chosen.token))


if __name__ == "__main__":
    main()
