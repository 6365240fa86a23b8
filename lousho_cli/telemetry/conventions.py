"""The names of OpenTelemetry's semantic conventions for generative AI, and our own where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT = "gen_ai.agent.name"
ERROR_TYPE = "error.type"

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
"""The operations."""

REQUEST_MODEL = "gen_ai.request.model"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_SEED = "gen_ai.request.seed"
REQUEST_STOP = "gen_ai.request.stop_sequences"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"

USAGE: Mapping[str, str] = {
    "inputTokens": "gen_ai.usage.input_tokens",
    "outputTokens": "gen_ai.usage.output_tokens",
    "cachedInputTokens": "gen_ai.usage.cache_read.input_tokens",
    "cacheWriteTokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoningTokens": "gen_ai.usage.reasoning.output_tokens",
}
"""By our own names."""

TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"

COST = "lousho.cost_usd"
STEP = "lousho.step"
STEPS = "lousho.steps"
RESUMED = "lousho.resumed"
FINISH_REASON = "lousho.finish_reason"
APPROVAL = "lousho.approval.id"
APPROVAL_KIND = "lousho.approval.kind"
APPROVAL_DECISION = "lousho.approval.decision"

_PROVIDERS: Mapping[str, str] = {
    "openai-responses": "openai",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
}
"""Providers that the conventions call otherwise."""


def model_attributes(model: str) -> dict[str, str]:
    """The provider and the name of a model that we know as `provider:model`."""
    provider, colon, name = model.partition(":")
    return {PROVIDER: _PROVIDERS.get(provider, provider), REQUEST_MODEL: name if colon else model}


def usage_attributes(usage: Mapping[str, Any]) -> dict[str, int | float]:
    """What a turn or a run has cost, as far as it is known."""
    known = {name: usage[ours] for ours, name in USAGE.items() if ours in usage}
    return {**known, COST: usage["costUsd"]} if "costUsd" in usage else known
