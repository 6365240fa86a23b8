"""What a model turn cost, as it is recorded."""

from __future__ import annotations

import math

import pytest

from lousho_cli import ModelResponse, Usage
from lousho_cli.execution.turns import turn_usage


@pytest.mark.parametrize("cost", [math.nan, math.inf])
def test_a_cost_that_is_no_amount_is_not_known(cost: float) -> None:
    usage = turn_usage(ModelResponse(content="", usage=Usage(input_tokens=3, cost_usd=cost)))
    assert "costUsd" not in usage
    assert usage["inputTokens"] == 3


def test_a_turn_without_usage_is_one_model_call() -> None:
    assert turn_usage(ModelResponse(content="")) == {"modelCalls": 1}
