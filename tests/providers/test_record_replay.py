"""`record_replay`: tests on recorded answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cassette_kit import LOOK, NoModel, agent_of

from lousho_cli import ConfigurationError, ProviderError, StorageError
from lousho_cli.errors import CassetteError
from lousho_cli.testing import ScriptedModel, record_replay
from lousho_cli.testing.cassettes import mode_from


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cassettes" / "tea.json"


def record(path: Path, text: str = "Here.") -> None:
    with record_replay(path, "record", ScriptedModel([LOOK, text])) as model:
        assert agent_of(model).send_sync("Tea?").text == text


def test_the_model_is_asked_once_and_played_from_then_on(path: Path) -> None:
    live = ScriptedModel([LOOK, "Here."])
    for _ in range(2):
        with record_replay(path, provider=live) as model:
            assert agent_of(model).send_sync("Tea?").text == "Here."
    assert len(live.calls) == 2


async def _send(path: Path) -> str:
    async with record_replay(path, "replay") as model:
        return (await agent_of(model).send("Tea?")).text


def test_it_works_in_async_code_too(path: Path) -> None:
    import asyncio

    record(path)
    assert asyncio.run(_send(path)) == "Here."


def test_a_replay_needs_no_model_and_changes_nothing(path: Path) -> None:
    record(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with record_replay(path, "replay", "no-such:model") as model:
        assert agent_of(model).send_sync("Tea?").text == "Here."
        with pytest.raises(CassetteError, match="no answer to this request"):
            agent_of(model).send_sync("Coffee?")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_model_can_be_named_and_is_looked_up_when_it_is_asked(path: Path) -> None:
    with record_replay(path, provider="demo") as model:
        assert agent_of(model).send_sync("Hello").text
    with record_replay(path, provider="no-such:model") as model:
        assert agent_of(model).send_sync("Hello").text
        with pytest.raises(ConfigurationError, match="no-such"):
            agent_of(model).send_sync("Coffee?")


def test_a_replay_without_a_cassette_is_an_error(path: Path) -> None:
    with pytest.raises(CassetteError, match="there is no cassette"), record_replay(path, "replay"):
        pass
    assert not path.parent.exists()


def test_a_recording_begins_the_cassette_anew(path: Path) -> None:
    record(path)
    with record_replay(path, "record", ScriptedModel(["A cup."])) as model:
        agent_of(model).send_sync("Coffee?")
    assert len(json.loads(path.read_text())["runs"][0]["calls"]) == 1
    assert list(path.parent.iterdir()) == [path]


def test_what_an_interrupted_recording_replaced_is_kept(path: Path) -> None:
    record(path)
    before = path.read_bytes()
    old = path.with_name("tea.json.old")
    for _ in range(2):
        with (
            pytest.raises(ProviderError),
            record_replay(path, "record", ScriptedModel([LOOK, {"error": "overloaded"}])) as model,
        ):
            agent_of(model).send_sync("Tea?")
        assert old.read_bytes() == before
        assert len(json.loads(path.read_text())["runs"][0]["calls"]) == 1
    record(path, "There.")
    assert not old.exists()


def test_a_recording_that_got_no_answer_leaves_the_cassette_alone(path: Path) -> None:
    record(path)
    before = path.read_bytes()
    with (
        pytest.raises(ProviderError),
        record_replay(path, "record", ScriptedModel([{"error": "overloaded"}])) as model,
    ):
        agent_of(model).send_sync("Tea?")
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_told_before_the_model_is_asked(path: Path) -> None:
    path.parent.write_text("a file where a folder is to be")
    with pytest.raises(StorageError), record_replay(path, "record", NoModel()) as model:
        agent_of(model).send_sync("Tea?")


def test_patterns_of_ones_own_make_no_difference(path: Path) -> None:
    volatile = [r"ord_\d+"]
    with record_replay(path, "record", ScriptedModel(["Sent."]), volatile=volatile) as model:
        agent_of(model).send_sync("Where is ord_1?")
    with record_replay(path, "replay", volatile=volatile) as model:
        assert agent_of(model).send_sync("Where is ord_2?").text == "Sent."


@pytest.mark.parametrize(
    ("environ", "mode"),
    [
        ({}, "auto"),
        ({"CI": "true"}, "replay"),
        ({"CI": "1", "LOUSHO_CASSETTE_MODE": "record"}, "record"),
        ({"CI": "false"}, "auto"),
        ({"CI": ""}, "auto"),
        ({"LOUSHO_CASSETTE_MODE": "replay"}, "replay"),
        ({"LOUSHO_CASSETTE_MODE": ""}, "auto"),
    ],
)
def test_the_environment_chooses_the_mode(environ: dict[str, str], mode: str) -> None:
    assert mode_from(environ) == mode


def test_in_ci_nothing_is_asked_by_default(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(CassetteError, match="there is no cassette"), record_replay(path, provider=NoModel()):
        pass


def test_a_mode_in_the_environment_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="LOUSHO_CASSETTE_MODE is 'rewind'"):
        mode_from({"LOUSHO_CASSETTE_MODE": "rewind"})
