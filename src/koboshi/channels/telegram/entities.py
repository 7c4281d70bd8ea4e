"""Formatted text as Telegram takes it: a text, and entities counted in UTF-16 code units."""

from dataclasses import dataclass

from koboshi.channels.common.formatting.formatted import (
    FormattedText,
    Ruler,
    Span,
    clean,
    clipped,
    literal_block,
)


@dataclass(frozen=True, slots=True)
class Entity:
    """A message entity of the Bot API; offset and length are UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What is sent: no whitespace around the text, and entities that the Bot API accepts."""

    text: str
    entities: tuple[Entity, ...]


def plain(text: str) -> Rendered:
    """The text as it is, without any formatting."""
    return Rendered(clean(text).strip(), ())


def literally(text: str, begin: int, end: int) -> Rendered:
    """The text as it is, with the characters from `begin` to `end` as a block of code: see
    `literal_block`."""
    return finished(literal_block(text, begin, end))


def clip(rendered: Rendered, units_max: int) -> Rendered:
    """The rendering, cut to at most `units_max` units with "…" at its end if it was longer.

    Raises ValueError if `units_max` is below 1.
    """
    ruler = Ruler(rendered.text)
    if units_max >= 1 and ruler.units(len(rendered.text)) <= units_max:
        return rendered
    spans = tuple(_span_of(entity, ruler) for entity in rendered.entities)
    return finished(clipped(FormattedText(rendered.text, spans), units_max))


def finished(shown: FormattedText) -> Rendered:
    """The same in the units of Telegram."""
    ruler = Ruler(shown.text)
    return Rendered(shown.text, tuple(_entity_of(span, ruler) for span in shown.spans))


def _entity_of(span: Span, ruler: Ruler) -> Entity:
    offset = ruler.units(span.begin)
    return Entity(span.kind, offset, ruler.units(span.end) - offset, span.url, span.language)


def _span_of(entity: Entity, ruler: Ruler) -> Span:
    begin, end = ruler.char(entity.offset), ruler.char(entity.offset + entity.length)
    return Span(entity.type, begin, end, entity.url, entity.language)
