"""The channels of a gateway."""

from functools import partial

from koboshi.app.builders.page import names_of, pages_of, web_limits
from koboshi.app.builders.shared import Shared
from koboshi.app.platforms.platform import ChannelSetup
from koboshi.app.platforms.registry import platform_of
from koboshi.app.tokens import web_token
from koboshi.channels.common.absent import AbsentChannel
from koboshi.channels.web.channel import WebChannel
from koboshi.channels.web.codec import Post, Unacceptable
from koboshi.commands.menu import menu
from koboshi.config import PlatformConfig, WebConfig
from koboshi.control.agents import living_agents
from koboshi.control.context import ControlContext, no_web_channel
from koboshi.control.handle import reply_to
from koboshi.control.replies import Done, MessageTaken, refusal
from koboshi.control.requests import SayInChat
from koboshi.domain.errors import ChannelUnusable
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel
from koboshi.ports.wakeups import OUTBOX
from koboshi.runtime.health import GatewayHealth
from koboshi.runtime.meter import labelled
from koboshi.runtime.metrics import Metrics


def platform_channels(shared: Shared) -> list[Channel]:
    """The channels of foreign platforms."""
    setup = ChannelSetup(
        home=shared.config.home,
        keeps_store_in_home=not shared.config.store.url,
        limits=shared.config.limits,
        commands=menu(),
        clock=shared.clock,
        on_back=partial(shared.wakeups.hint, OUTBOX),
        watermarks=shared.store.inbox.watermarks,
        is_allowed=shared.store.people.is_allowed,
    )
    # The libraries of a platform cost only those who use it.
    return [
        _built(each, setup)
        for each in shared.config.enabled_channels
        if isinstance(each, PlatformConfig)
    ]


def _built(config: PlatformConfig, setup: ChannelSetup) -> Channel:
    """A channel that never can work is down by itself, and no other one with it."""
    try:
        return platform_of(config.platform).build(config, setup)
    except ChannelUnusable as error:
        return AbsentChannel(name=ChannelName(config.name), reason=str(error))


def web_channels(
    shared: Shared, health: GatewayHealth, control: ControlContext
) -> list[WebChannel]:
    config = shared.config
    metrics = Metrics(
        store=shared.store,
        clock=shared.clock,
        health=health,
        worker=shared.worker,
        home=config.home,
        writes=shared.store,
        meter=shared.meter,
        agents=partial(living_agents, shared.store.agents, shared.runners),
    )
    on_refused = partial(shared.meter.count, "koboshi_auth_failures_total", labelled(surface="web"))
    return [
        WebChannel(
            name=ChannelName(channel.name),
            names=names_of(channel),
            port=channel.port,
            token=web_token(config.home, channel),
            browsers=shared.store.browsers,
            views=shared.store.views,
            wakeups=shared.wakeups,
            health=health,
            clock=shared.clock,
            limits=web_limits(config, is_shared=shared.store.is_shared),
            is_shared=shared.store.is_shared,
            shelf=shared.shelf,
            home=config.home,
            listeners=shared.listeners,
            metrics=metrics.text,
            on_refused=on_refused,
            pages=pages_of(
                config,
                ChannelName(channel.name),
                partial(reply_to, control),
                tools=lambda: shared.neighbours.tools(),
                is_supervised=shared.is_supervised,
            ),
        )
        for channel in config.enabled_channels
        if isinstance(channel, WebConfig)
    ]


async def say_in_chat(web: list[WebChannel], said: SayInChat) -> Done:
    """Have the first web channel store what a person wrote at the terminal."""
    if not web:
        return await no_web_channel()
    post = Post(text=said.text, thread=said.thread, question=said.question, choice=said.choice)
    try:
        taken = await web[0].say(said.what, said.message, post)
    except Unacceptable as error:
        return refusal(error.kind, error.message)
    return MessageTaken(message=taken.message, state=taken.state, duplicate=taken.duplicate)
