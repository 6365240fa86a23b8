"""The model `script:FILE`: which turn is played, over processes, and what is said about a broken script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lousho_cli.errors import ConfigurationError, ProviderError
from lousho_cli.execution.conversation import Messages
from lousho_cli.execution.log import Log
from lousho_cli.execution.messages import MessageData
from lousho_cli.execution.protocols import ModelRequest
from lousho_cli.execution.records import ModelResponse
from lousho_cli.providers.scripted import ScriptFile

USER: MessageData = {"role": "user", "content": "go"}


def assistant(text: str = "ok") -> MessageData:
    return {"role": "assistant", "content": text}


def ask(model: ScriptFile, log: Log, session: str | None = None) -> ModelResponse:
    return asyncio.run(model.generate(ModelRequest(Messages(log, "system"), session_id=session)))


def script(tmp_path: Path, turns: Any) -> Path:
    path = tmp_path / "script.json"
    path.write_text(turns if isinstance(turns, str) else json.dumps(turns), encoding="utf-8")
    return path


class CountingLog(Log):
    """A transcript that counts the messages looked at."""

    __slots__ = ("looked_at",)

    def slice(self, start: int, stop: int | None = None) -> Iterator[MessageData]:
        self.looked_at = len(self) - start
        return super().slice(start, stop)


def test_the_turn_is_the_one_after_the_assistant_turns_of_the_transcript(tmp_path: Path) -> None:
    path = script(tmp_path, ["one", "two", "three"])
    log = Log([USER])
    for expected in ("one", "two", "three"):
        # A model of its own each time, as in a new process.
        assert ask(ScriptFile(path), log).content == expected
        log = log.extended([assistant(), USER])


def test_a_growing_transcript_is_read_once(tmp_path: Path) -> None:
    model = ScriptFile(script(tmp_path, [str(n) for n in range(10)]))
    messages: list[MessageData] = [USER]
    for n in range(10):
        log = CountingLog(messages)
        assert ask(model, log).content == str(n)
        assert log.looked_at == (1 if n == 0 else 2)
        messages += [assistant(), USER]


def test_sessions_may_take_turns_without_being_read_again(tmp_path: Path) -> None:
    model = ScriptFile(script(tmp_path, ["zero", "one", "two"]))
    here, there = [USER], [USER, assistant(), USER]
    assert ask(model, Log(here), "here").content == "zero"
    assert ask(model, Log(there), "there").content == "one"
    longer = CountingLog([*here, assistant(), USER])
    assert ask(model, longer, "here").content == "one"
    assert longer.looked_at == 2


@pytest.mark.parametrize(
    "rewritten",
    [
        pytest.param([USER], id="shorter"),
        pytest.param([USER, {**USER}, {**USER}, {**USER}], id="same length, other messages"),
    ],
)
def test_a_transcript_that_was_rewritten_is_counted_anew(
    tmp_path: Path, rewritten: list[MessageData]
) -> None:
    model = ScriptFile(script(tmp_path, ["zero", "one", "two"]))
    assert ask(model, Log([USER, assistant(), USER, assistant()])).content == "two"
    assert ask(model, Log(rewritten)).content == "zero"


def test_call_ids_are_the_same_in_every_process_and_unique_over_the_script(tmp_path: Path) -> None:
    turns = [
        {"tool_calls": [{"name": "a"}, {"name": "b", "id": "call_2"}]},
        {"tool_calls": [{"name": "c"}, {"name": "d", "id": ""}, {"name": "e"}]},
    ]
    path = script(tmp_path, turns)
    second = ask(ScriptFile(path), Log([USER, assistant()]))
    assert [call.id for call in second.tool_calls] == ["call_3", "", "call_4"]
    first = ask(ScriptFile(path), Log([USER]))
    assert [call.id for call in first.tool_calls] == ["call_1", "call_2"]


def test_the_file_is_read_when_it_is_needed_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    model = ScriptFile(path)
    path.write_text('\ufeff["one"]', encoding="utf-8")
    assert ask(model, Log([USER])).content == "one"
    path.unlink()
    assert ask(model, Log([USER])).content == "one"


def test_the_model_id_is_as_it_was_given(tmp_path: Path) -> None:
    assert ScriptFile(tmp_path / "s.json", "script:s.json").model == "script:s.json"
    assert ScriptFile("s.json").model == "script:s.json"


def test_running_out_says_how_many_turns_there_are(tmp_path: Path) -> None:
    path = script(tmp_path, ["one", "two"])
    with pytest.raises(ProviderError, match="has 2 turns, and turn 4 was asked for") as raised:
        ask(ScriptFile(path), Log([assistant(), assistant(), assistant()]))
    assert str(path) in str(raised.value)
    assert raised.value.hint


def test_an_error_turn_fails_as_a_provider_does(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="down"):
        ask(ScriptFile(script(tmp_path, [{"error": "down"}])), Log([USER]))


@pytest.mark.parametrize(
    ("text", "says", "advises"),
    [
        ('[\n  "one",\n  {"text": }\n]', "line 3, column 12", "a JSON list of turns"),
        ("", "line 1, column 1", "a JSON list of turns"),
        ('{"text": "one"}', "holds no list", '["Done."]'),
        ('["one", 2]', "turn 2 is 2", "a turn is a text"),
        ('["one", {"tool_call": []}]', "turn 2: unknown key `tool_call`", "`tool_calls`"),
        ('[{"tool_calls": [{"name": "a", "input": {}}]}]', "turn 1, call 1: unknown key `input`", "`args`"),
        (
            '[{"usage": {"prompt_tokens": 1}}]',
            "turn 1: `usage`: unknown key `prompt_tokens`",
            "`input_tokens`",
        ),
        ('[{"tool_calls": [{"name": "a", "args": {"x": NaN}}]}]', "turn 1, call 1: `args`", "as a text"),
    ],
)
def test_a_broken_script_is_named_with_its_place(tmp_path: Path, text: str, says: str, advises: str) -> None:
    path = script(tmp_path, text)
    with pytest.raises(ConfigurationError) as raised:
        ask(ScriptFile(path), Log([USER]))
    assert str(path) in str(raised.value)
    assert says in str(raised.value)
    assert advises in raised.value.hint


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read the script .*missing\.json"):
        ask(ScriptFile(tmp_path / "missing.json"), Log([USER]))
    (tmp_path / "latin.json").write_bytes(b'["caf\xe9"]')
    with pytest.raises(ConfigurationError, match=r"latin\.json cannot be read"):
        ask(ScriptFile(tmp_path / "latin.json"), Log([USER]))
