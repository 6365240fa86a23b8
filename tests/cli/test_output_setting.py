"""The shape of an agent's answer, set in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_workspace import ScriptedWorkspace

from lousho_cli import ConfigurationError
from lousho_cli.agents.folder import load_agent

SCHEMA = '{"type": "object", "required": ["city"]}'
INLINE = '[output]\ntype = "object"\nrequired = ["city"]\n'


@pytest.mark.parametrize("setting", ['output = "shape.json"\n', INLINE])
def test_the_answer_is_printed_as_a_value(tmp_path: Path, setting: str) -> None:
    place = ScriptedWorkspace(tmp_path).make(["Oslo", '{"city": "Oslo"}'], settings=setting)
    (place.agent / "shape.json").write_text(SCHEMA)
    done = place.json("run", "s1", "where?")
    assert (done["output"], done["steps"], done["finishReason"]) == ({"city": "Oslo"}, 2, "stop")


def test_an_answer_that_never_has_its_shape_is_exit_1(tmp_path: Path) -> None:
    place = ScriptedWorkspace(tmp_path).make(["Oslo", "Bergen"], settings='output = "shape.json"\n')
    (place.agent / "shape.json").write_text(SCHEMA)
    failed = place.run("run", "s1", "where?")
    assert failed.returncode == 1
    assert "the run ended early: output-invalid" in failed.stderr
    assert failed.stderr.count("the answer does not have its shape") == 2


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.json", None, "there is no file"),
        ("x.json", "{", "is not JSON"),
        ("x.json", "[]", "holds no object"),
        ("../../config.toml", None, "is not in the agent's folder"),
    ],
)
def test_a_schema_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str | None, words: str
) -> None:
    place = ScriptedWorkspace(tmp_path).make(["never"], settings=f'output = "{name}"\n')
    if content is not None:
        (place.agent / name).write_text(content)
    with pytest.raises(ConfigurationError, match=words):
        load_agent(place.agent)
