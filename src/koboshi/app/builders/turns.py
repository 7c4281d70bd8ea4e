"""What works on the turns of a gateway."""

from collections.abc import Mapping
from functools import partial

from koboshi.agent.prompt import system_prompt
from koboshi.agent.summary import ContextLimits
from koboshi.app.boot_config import redactor_of
from koboshi.app.builders.shared import Shared
from koboshi.app.zone import zone_of
from koboshi.config import WebConfig
from koboshi.domain.action import TurnLimits
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel
from koboshi.runtime.approval_cards import ApprovalCards
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.calls import CallRunner
from koboshi.runtime.drafts import Drafts
from koboshi.runtime.measured import MeasuredModel
from koboshi.runtime.model_caller import ModelCaller
from koboshi.runtime.progress import Progress
from koboshi.runtime.shipping import TEXT_MAX, Shipping
from koboshi.runtime.turn import TurnRunner
from koboshi.tools.registry import Toolbox


def turn_runner(
    shared: Shared, channels: Mapping[ChannelName, Channel], tools: Toolbox
) -> TurnRunner:
    config, limits = shared.config, shared.config.limits
    redact = redactor_of(config)
    return TurnRunner(
        store=shared.store,
        asking=_model_caller(shared, channels),
        tools=tools,
        calls=CallRunner(
            store=shared.store,
            tools=tools,
            result_chars_max=limits.step_bytes_max // 4,
            redact=redact,
            side_by_side_max=limits.calls_side_by_side_max,
        ),
        wakeups=shared.wakeups,
        clock=shared.clock,
        shipping=Shipping(channels=channels, home=config.home),
        log_size_of=shared.runners.log_size,
        limits=TurnLimits(
            steps_max=limits.steps_per_turn_max, empty_replies_max=limits.empty_replies_max
        ),
        cards=ApprovalCards(
            clock=shared.clock,
            age_ms_max=limits.question_age_ms,
            units_max=partial(_units_max, channels),
            has_page=any(isinstance(each, WebConfig) for each in config.enabled_channels),
        ),
        poll_seconds=limits.poll_seconds,
        release_seconds=limits.release_seconds,
        drain=shared.drain,
        progress=Progress(
            store=shared.store,
            clock=shared.clock,
            drain=shared.drain,
            channels=channels,
            every_seconds=config.gateway.progress_seconds,
            redact=redact,
        ),
        attachments=Attachments(
            store=shared.store,
            channels=channels,
            workdir=config.gateway.workdir,
            seconds=limits.file_seconds,
        ),
    )


def _units_max(channels: Mapping[ChannelName, Channel], name: ChannelName) -> int | None:
    """What one message of a channel shows; of one that is gone, what every platform takes."""
    channel = channels.get(name)
    return TEXT_MAX if channel is None else channel.abilities.question_units_max


def _model_caller(shared: Shared, channels: Mapping[ChannelName, Channel]) -> ModelCaller:
    config, limits = shared.config, shared.config.limits
    return ModelCaller(
        drafts=Drafts(channels=channels),
        store=shared.store,
        model=MeasuredModel(
            model=shared.model,
            meter=shared.meter,
            clock=shared.clock,
            name=config.model.name,
            standing=shared.neighbours.model,
        ),
        clock=shared.clock,
        system=system_prompt(config.model.system_prompt),
        context=ContextLimits(
            tokens_max=limits.context_tokens_max,
            steps_max=limits.context_steps_max,
            summary_tokens_max=limits.summary_tokens_max,
        ),
        held_ms_max=limits.model_held_wait_ms_max,
        zone=zone_of(config),
    )
