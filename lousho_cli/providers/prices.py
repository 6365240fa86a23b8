"""What a model turn cost, by the price list of genai-prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


def cost_of(response: ModelResponse) -> float | None:
    """US dollars for one turn; None if the model or what it used is not known, never 0 for that."""
    if response.usage.unmeasured_requests or not response.model_name or not response.usage.has_values():
        return None
    if response.usage.cost is not None:
        return float(response.usage.cost)
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None
