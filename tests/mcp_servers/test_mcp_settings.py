"""What `[mcp.NAME]` may say, what its tools are called, and how arguments and results are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp.types import (
    AudioContent,
    CallToolResult,
    ImageContent,
    TextContent,
    ToolAnnotations,
)

from lousho_cli import ConfigurationError
from lousho_cli.agents.definition import read_definition
from lousho_cli.agents.mcp.arguments import binder, parameters_of
from lousho_cli.agents.mcp.naming import tool_name
from lousho_cli.agents.mcp.results import error_text, result_value
from lousho_cli.agents.mcp.settings import McpTool
from lousho_cli.agents.mcp.toolset import _on_interrupt
from lousho_cli.execution.tools import InvalidArgumentsError


def read(folder: Path, text: str) -> Any:
    (folder / "agent.toml").write_text(text)
    return read_definition(folder).mcp


def test_a_table_is_read_whole(tmp_path: Path) -> None:
    (server,) = read(
        tmp_path,
        """
        [mcp.files]
        command = "serve"
        args = ["--all"]
        env = { KEY = "${KEY}" }
        timeout = 5
        tools = ["a", "b"]
        exclude = ["b"]
        [mcp.files.tool.a]
        needs_approval = false
        on_interrupt = "fail"
        timeout = 0.5
        """,
    )
    assert (server.name, server.command, server.args) == ("files", "serve", ["--all"])
    assert server.tool == {"a": McpTool(False, "fail", 0.5)}
    assert [server.offers(name) for name in "abc"] == [True, False, False]
    assert "KEY" not in repr(server)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[mcp.a]", "give either command or url"),
        ('[mcp.a]\ncommand = "x"\nurl = "http://y"', "give either command or url"),
        ('[mcp.a]\ncommand = "x"\ncomand = "y"', "unknown key 'comand'"),
        ('[mcp.a]\ncommand = "x"\ntimeout = 0', "timeout is wrong"),
        ('[mcp.a]\nurl = "ftp://x"', "url is no web address"),
        ('[mcp.a]\nurl = "http://x"\nargs = ["y"]', "args is for a server with a command"),
        ('[mcp.a]\ncommand = "x"\nheaders = { A = "b" }', "headers is for a server with a url"),
        ('[mcp.a]\nurl = "http://x"\nheaders = { Authorization = "hush" }', "holds a secret"),
        ('[mcp.a]\ncommand = "x"\n[mcp.a.tool.t]\non_interrupt = "no"', "tool is wrong"),
        ('[mcp."a b"]\ncommand = "x"', "'a b' cannot be the name"),
        ('mcp = "x"', "mcp is no table"),
    ],
)
def test_what_is_wrong_is_named_without_the_secret(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        read(tmp_path, text)
    assert problem in wrong.value.message
    assert "hush" not in f"{wrong.value.message} {wrong.value.hint}"


def test_names_are_what_every_provider_takes() -> None:
    assert tool_name("time", "convert_time") == "time_convert_time"
    dotted, other = tool_name("a", "x.y"), tool_name("a", "x/y")
    assert dotted.startswith("a_x_y_")
    assert dotted != other != tool_name("a", "x_y")
    long = tool_name("server", "t" * 80)
    assert len(long) == 64
    assert long != tool_name("server", "t" * 81)


def test_arguments_are_checked_and_passed_on_as_they_are() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    bind = binder(schema)
    given = {"n": 3, "more": {"kept": True}}
    assert bind(given) == given
    with pytest.raises(InvalidArgumentsError, match="n: 0 is less than the minimum of 1"):
        bind({"n": 0})
    assert binder({"type": "nonsense"})({"any": 1}) == {"any": 1}
    assert binder({"properties": {"a": {"$ref": "http://127.0.0.1:1/s"}}})({"a": 1}) == {"a": 1}
    assert parameters_of({"$schema": "x", "type": "object"}) == {"type": "object", "properties": {}}


def test_results_follow_the_documented_rules() -> None:
    one, two = TextContent(text='{"a": 1}'), TextContent(text="b")
    image = ImageContent(data="aGk=", mime_type="image/png")
    sound = AudioContent(data="aGk=", mime_type="audio/wav")
    shown = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert result_value(CallToolResult(content=[one])) == '{"a": 1}'
    assert result_value(CallToolResult(content=[one, two])) == ['{"a": 1}', "b"]
    assert result_value(CallToolResult(content=[image])) == shown
    assert result_value(CallToolResult(content=[])) is None
    assert result_value(CallToolResult(content=[one], structured_content={"a": 1})) == {"a": 1}
    both = result_value(CallToolResult(content=[sound], structured_content=[1]))
    assert both == {"structured": [1], "content": [{**shown, "type": "audio", "mimeType": "audio/wav"}]}
    assert error_text(CallToolResult(content=[one, image, two], is_error=True)) == '{"a": 1}\nb'
    assert "did not say why" in error_text(CallToolResult(content=[], is_error=True))


def test_an_interrupted_call_is_asked_about_unless_a_repetition_is_harmless() -> None:
    assert _on_interrupt(None) == "ask"
    assert _on_interrupt(ToolAnnotations(destructive_hint=False)) == "ask"
    assert _on_interrupt(ToolAnnotations(idempotent_hint=True)) is None
    assert _on_interrupt(ToolAnnotations(read_only_hint=True)) == "rerun"
