"""How a model is asked, in the library's words: settings, tools, instructions and the shape of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputMode, OutputObjectDefinition
from pydantic_ai.settings import ModelSettings as LibrarySettings
from pydantic_ai.tools import ToolDefinition

from ...execution.protocols import ModelRequest, ModelSettings, ToolSchema
from .catalog import Kind

_CHOICES = ("auto", "required", "none")


def library_settings(
    settings: ModelSettings,
    tools: Sequence[ToolSchema],
    model: Model[Any],
    headers: Mapping[str, str],
    kind: Kind,
) -> LibrarySettings:
    """The settings of one request, without those this model would ignore.

    The client never asks twice by itself: each attempt is the engine's, which counts and shows it.
    """
    choice = settings.tool_choice
    wanted: dict[str, Any] = {
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "thinking": settings.thinking,
        "tool_choice": choice if choice is None or choice in _CHOICES else [choice],
        "parallel_tool_calls": settings.parallel_tool_calls,
        "stop_sequences": list(settings.stop) or None,
        "seed": settings.seed,
        "timeout": settings.timeout,
        "request_timeout": settings.timeout,
        "extra_body": dict(settings.extra_body) or None,
        "extra_headers": dict(headers) or None,
        "max_retries": 0,
    }
    if not tools:
        wanted["tool_choice"] = wanted["parallel_tool_calls"] = None
    if kind == "openai-responses":
        # A session may go on weeks later, so it holds all it needs itself: nothing stays with the provider.
        wanted["openai_store"] = False
    ignored = model.unsupported_settings
    given = {key: value for key, value in wanted.items() if value is not None and key not in ignored}
    return cast(LibrarySettings, given)


def request_parameters(request: ModelRequest, model: Model[Any]) -> ModelRequestParameters:
    """The tools, the instructions, and the shape of the answer where one is asked for."""
    system = request.messages.system
    instructions = [InstructionPart(content=system)] if system and system.strip() else None
    tools = [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters)
        )
        for tool in request.tools
    ]
    if request.output is None:
        return ModelRequestParameters(function_tools=tools, instruction_parts=instructions)
    return ModelRequestParameters(
        function_tools=tools,
        instruction_parts=instructions,
        output_mode=_output_mode(model, bool(tools)),
        output_object=OutputObjectDefinition(
            json_schema=dict(request.output), name=str(request.output.get("title") or "answer")
        ),
        allow_text_output=True,
    )


def _output_mode(model: Model[Any], with_tools: bool) -> OutputMode:
    """`native` where the provider holds the model to a schema; `prompted` puts the schema into words."""
    profile: Mapping[str, Any] = model.profile
    native = profile.get("supports_json_schema_output", False)
    if model.system.startswith("google") and with_tools:
        native = native and profile.get("google_supports_tool_combination", False)
    return "native" if native else "prompted"
