"""What works on the turns of a gateway."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from koboshi.agent.prompt import system_prompt
from koboshi.agent.summary import ContextLimits
from koboshi.app.boot_config import redactor_of
from koboshi.app.builders.agents import agent_turns
from koboshi.app.builders.control import memory_limits
from koboshi.app.builders.shared import Shared
from koboshi.app.builders.tools import may_use_skills, skills_of
from koboshi.app.prices import LOCAL_VOICE, voice_of
from koboshi.app.zone import zone_of
from koboshi.config import Config, WebConfig
from koboshi.domain.action import TurnLimits
from koboshi.domain.files import PICTURES
from koboshi.domain.ids import ChannelName
from koboshi.ports.channel import Channel
from koboshi.ports.transcriber import Transcriber, Transcript
from koboshi.runtime.approval_cards import ApprovalCards
from koboshi.runtime.attachments import Attachments
from koboshi.runtime.calls import CallRunner
from koboshi.runtime.dictation import Dictation
from koboshi.runtime.drafts import Drafts
from koboshi.runtime.model_caller import ModelCaller
from koboshi.runtime.picture_shelf import PictureShelf
from koboshi.runtime.progress import Progress
from koboshi.runtime.readings import Readings
from koboshi.runtime.recollection import Recollection
from koboshi.runtime.shipping import TEXT_MAX, Shipping
from koboshi.runtime.turn import TurnRunner
from koboshi.tools.registry import Toolbox


def turn_runner(
    shared: Shared, channels: Mapping[ChannelName, Channel], tools: Toolbox
) -> TurnRunner:
    config, limits = shared.config, shared.config.limits
    redact = redactor_of(config)
    shipping = Shipping(channels=channels, home=config.home, shelf=shared.shelf)
    attachments = Attachments(
        store=shared.store,
        channels=channels,
        workdir=config.gateway.workdir,
        seconds=limits.file_seconds,
    )
    cards, recollection = _cards(shared, channels), _recollection(shared)
    return TurnRunner(
        store=shared.store,
        asking=_model_caller(shared, channels),
        tools=tools,
        calls=_call_runner(shared, tools),
        trust=shared.trust,
        wakeups=shared.wakeups,
        clock=shared.clock,
        shipping=shipping,
        foreign=agent_turns(shared, shipping, attachments, cards, recollection),
        log_size_of=shared.runners.log_size,
        limits=_turn_limits(shared),
        cards=cards,
        poll_seconds=shared.poll_seconds,
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
        attachments=attachments,
        readings=_readings(shared),
        recollection=recollection,
    )


def _recollection(shared: Shared) -> Recollection:
    config = shared.config
    return Recollection(
        memories=shared.store.memory,
        files=shared.memory_files,
        limits=memory_limits(config),
        workdir=config.gateway.workdir,
        skills=skills_of(config),
        may_use_skills=partial(may_use_skills, config),
        context_files=config.memory.context_files,
        context_chars=config.memory.context_chars,
        is_on=config.memory.enabled,
    )


def _cards(shared: Shared, channels: Mapping[ChannelName, Channel]) -> ApprovalCards:
    config = shared.config
    return ApprovalCards(
        clock=shared.clock,
        age_ms_max=config.limits.question_age_ms,
        units_max=partial(_units_max, channels),
        has_page=any(isinstance(each, WebConfig) for each in config.enabled_channels),
    )


def _turn_limits(shared: Shared) -> TurnLimits:
    limits = shared.config.limits
    return TurnLimits(
        steps_max=limits.steps_per_turn_max, empty_replies_max=limits.empty_replies_max
    )


def _call_runner(shared: Shared, tools: Toolbox) -> CallRunner:
    limits = shared.config.limits
    return CallRunner(
        store=shared.store,
        tools=tools,
        result_chars_max=limits.step_bytes_max // 4,
        redact=redactor_of(shared.config),
        side_by_side_max=limits.calls_side_by_side_max,
        trust=shared.trust,
        shelf=shared.shelf,
    )


def _readings(shared: Shared) -> Readings:
    config = shared.config
    return Readings(
        store=shared.store,
        parsers=shared.parsers,
        dictation=_dictation(shared),
        shelf=PictureShelf(folder=config.home / PICTURES),
        workdir=config.gateway.workdir,
        sees_pictures=any(model.sees_pictures for model in config.links),
    )


def _dictation(shared: Shared) -> Dictation | None:
    """What writes down voice messages, if the owner named a service or a model. Its code is loaded
    when it is first needed."""
    voice = shared.config.voice
    if voice.folder is not None:
        local = LateTranscriber(load=partial(_local, shared))
        return Dictation(transcriber=local, model=LOCAL_VOICE)
    if not voice.url:
        return None
    return Dictation(
        transcriber=LateTranscriber(load=partial(_service, shared.config)),
        model=voice_of(voice),
        billing=shared.chain.billing,
        minute_price=voice.minute_price,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LateTranscriber:
    load: Callable[[], Transcriber]

    async def transcribe(self, name: str, content: bytes) -> Transcript:
        return await self.load().transcribe(name, content)


def _service(config: Config) -> Transcriber:
    from koboshi.models.transcription import HttpTranscriber

    voice = config.voice
    key = os.environ.get(voice.key_env, "") if voice.key_env else ""
    return HttpTranscriber(url=voice.url, model=voice.model, key=key)


def _local(shared: Shared) -> Transcriber:
    from koboshi.models.transcription import LocalTranscriber

    voice = shared.config.voice
    return LocalTranscriber(
        parsers=shared.parsers, folder=str(voice.folder), language=voice.language
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
        chain=shared.chain,
        clock=shared.clock,
        system=system_prompt(config.model.system_prompt),
        context=ContextLimits(
            tokens_max=limits.context_tokens_max,
            steps_max=limits.context_steps_max,
            summary_tokens_max=limits.summary_tokens_max,
        ),
        held_ms_max=limits.model_held_wait_ms_max,
        zone=zone_of(config),
        shelf=PictureShelf(folder=config.home / PICTURES),
    )
