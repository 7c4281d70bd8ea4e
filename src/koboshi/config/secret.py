"""A text that must not be seen."""


class Secret:
    """A secret text that prints as `Secret(***)`; only `reveal()` gives it away.

    Deliberately not a dataclass: `dataclasses.asdict` would take it apart.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself: for the one place that sends or compares it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))
