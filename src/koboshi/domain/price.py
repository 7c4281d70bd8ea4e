"""What a model costs: prices that the operator has written down, and the estimate made of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """In dollars for a million tokens, as providers list it; or for a minute of speech."""

    input: float = 0
    output: float = 0
    minute: float = 0

    def cost_of(self, tokens_in: int, tokens_out: int, seconds: int = 0) -> int:
        """In millionths of a dollar. An estimate: cached input and discounts are not known."""
        spoken = seconds * self.minute * 1_000_000 / 60
        return round(tokens_in * self.input + tokens_out * self.output + spoken)


def price_of(input_price: float, output_price: float) -> Price | None:
    """None if no price is written down: a price of 0 for both says nothing."""
    known = input_price > 0 or output_price > 0
    return Price(input=input_price, output=output_price) if known else None
