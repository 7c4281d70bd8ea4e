"""What a model costs: prices that the operator has written down, and the estimate made of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """In dollars for a million tokens, as providers list it."""

    input: float
    output: float

    def cost_of(self, tokens_in: int, tokens_out: int) -> int:
        """In millionths of a dollar. An estimate: cached input and discounts are not known."""
        return round(tokens_in * self.input + tokens_out * self.output)


def price_of(input_price: float, output_price: float) -> Price | None:
    """None if no price is written down: a price of 0 for both says nothing."""
    known = input_price > 0 or output_price > 0
    return Price(input=input_price, output=output_price) if known else None
