"""The file of a cassette: what is written, and what is refused with a clear error."""

from __future__ import annotations

import json
import os
import random
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cassette_kit import LOOK, taped

from lousho_cli.errors import CassetteError, StorageError
from lousho_cli.providers import cassette_file
from lousho_cli.providers.cassette import Cassette, CassetteRun, slug
from lousho_cli.testing import ScriptedModel


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassettes" / "tea.json"


def recorded(text: str = "Here.") -> Cassette:
    run = CassetteRun()
    taped(ScriptedModel([LOOK, text]), run, "record").send_sync("Tea?")
    return Cassette([run])


def saved(path: Path) -> Any:
    recorded().save(path)
    return json.loads(path.read_text())


def refusal(path: Path) -> str:
    with pytest.raises(CassetteError) as caught:
        Cassette.load(path)
    assert caught.value.code == "LOUSHO_CASSETTE_INVALID"
    assert str(path) in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


def test_it_is_json_for_people_and_version_control(path: Path) -> None:
    recorded("Schön: \u202e \x7f").save(path)
    data = path.read_bytes()
    assert data.endswith(b"}\n")
    assert b"\r" not in data
    assert "Schön: \\u202e \\u007f".encode() in data
    assert data.decode().splitlines()[1:4] == ['  "version": 1,', '  "runs": [', "    {"]
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_the_same_calls_make_the_same_file(path: Path) -> None:
    recorded().save(path)
    before = path.read_bytes()
    recorded().save(path)
    assert path.read_bytes() == before
    loaded = Cassette.load(path)
    assert loaded is not None
    loaded.save(path)
    assert path.read_bytes() == before


def test_a_request_that_goes_on_holds_only_what_is_new(path: Path) -> None:
    first, second = saved(path)["runs"][0]["calls"]
    assert [message["role"] for message in first["request"]["messages"]] == ["system", "user"]
    assert second["request"].keys() == {"continues", "messages"}
    assert [message["role"] for message in second["request"]["messages"]] == ["assistant", "tool"]


def test_what_its_maker_keeps_with_it_comes_back(path: Path) -> None:
    cassette = recorded()
    cassette.data, cassette.runs[0].data = {"made": "by an eval"}, {"tools": [1, {"b": 2, "a": None}]}
    cassette.save(path)
    loaded = Cassette.load(path)
    assert loaded is not None
    assert (loaded.data, loaded.runs[0].data) == (cassette.data, cassette.runs[0].data)


def test_no_file_is_no_cassette(path: Path) -> None:
    assert Cassette.load(path) is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON: Expecting property name"),
        (b'{"version": 1, "runs": [NaN]}', "NaN is not JSON"),
        (b'{"version": 1, "runs": [1e999]}', "too large"),
        (b'{"version": 1, "runs": [' + b"1" * 5000 + b"]}", "no JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 400 + b"]" * 400, "nested too deeply"),
        (b"null", "empty"),
        (b"[]", "says no `version`"),
        (b'{"version": true}', "says no `version`"),
        (b'{"version": "1"}', "says no `version`"),
        (b'{"version": 2, "what": "ever"}', "is of version 2, and this lousho knows 1"),
        (b'{"version": 1}', "has no `runs`"),
        (b'{"version": 1, "runs": {}}', "runs is no list"),
        (b'{"version": 1, "runs": [1]}', "runs[0] is no object"),
        (b'{"version": 1, "runs": [], "extra": 1}', "unknown field `extra`"),
        (b'{"version": 1, "runs": [], "data": 1}', "data is no object"),
        ("{}".encode("utf-16"), "not in UTF-8"),
        (b'{"version": 1, "runs": [\xff]}', "byte 24 is wrong"),
    ],
)
def test_what_is_no_cassette_is_refused(path: Path, content: bytes, problem: str) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert problem in refusal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (["key"], "abc", "calls[1].key is no SHA-256"),
        (["key"], None, "calls[1].key is no SHA-256"),
        (["model"], 3, "calls[1].model is no text"),
        (["response"], None, "calls[1].response is no object"),
        (["response"], {"toolCalls": [{"id": 1}]}, "calls[1].response.toolCalls[0].id"),
        (["request"], [], "calls[1].request is no object"),
        (["request", "continues"], 2, "calls[1].request.continues is no number of an earlier call"),
        (["request", "continues"], True, "continues is no number"),
        (["request", "continues"], -1, "continues is no number"),
        (["request", "messages"], "x", "calls[1].request.messages is no list"),
        (["request", "messages"], ["x"], "calls[1].request.messages[0] is no object"),
        (["request", "more"], 1, "calls[1].request has an unknown field `more`"),
    ],
)
def test_a_wrong_type_is_named_by_its_place(path: Path, place: list[str], value: Any, problem: str) -> None:
    data = saved(path)
    holder = data["runs"][0]["calls"][1]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path.write_text(json.dumps(data))
    assert problem in refusal(path)


def test_flipped_bits_are_refused_or_play_whole_turns(path: Path) -> None:
    saved(path)
    whole = path.read_bytes()
    choice = random.Random(7)
    for _ in range(150):
        data = bytearray(whole)
        data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
        path.write_bytes(data)
        with suppress(CassetteError):
            loaded = Cassette.load(path)
            assert loaded is not None
            taped(None, loaded.runs[0], "replay").send_sync("Tea?")


def test_a_cut_file_is_refused(path: Path) -> None:
    saved(path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 97):
        path.write_bytes(whole[:length])
        refusal(path)


def test_a_mark_at_the_start_of_the_file_is_no_damage(path: Path) -> None:
    saved(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert Cassette.load(path) is not None


def test_a_large_file_is_not_read(path: Path) -> None:
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert "larger than" in refusal(path)


def test_what_could_not_be_read_again_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved(path)
    monkeypatch.setattr(cassette_file, "LARGEST", 5000)
    with pytest.raises(CassetteError, match="would be larger"):
        recorded("x" * 5000).save(path)
    monkeypatch.undo()
    assert json.loads(path.read_text()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "dangling"])
def test_only_regular_files_are_read_and_replaced(path: Path, kind: str) -> None:
    saved(path)
    odd = path.with_name("odd.json")
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    else:
        odd.symlink_to(path if kind == "link" else path.with_name("nowhere"))
    assert "is a link, a folder or no file" in refusal(odd)
    before = odd.lstat()
    with pytest.raises(CassetteError, match="is a link"):
        recorded().save(odd)
    assert odd.lstat() == before


@pytest.mark.skipif(sys.platform == "win32", reason="a name that the system cannot have")
@pytest.mark.parametrize("name", ["x" * 300, "tea.json/under-a-file"])
def test_a_place_that_cannot_be_written_is_a_storage_error(path: Path, name: str) -> None:
    saved(path)
    with pytest.raises(StorageError, match="could not be written"):
        recorded().save(path.with_name("tea.json").parent / name)


def test_a_name_that_is_no_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="no path"):
        Cassette.load(tmp_path / "a\0b")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("forty-two", "forty-two"),
        ("Forty two!", "forty-two"),
        ("../../etc/passwd", "etc-passwd"),
        ("Größe 3", "größe-3"),
        ("snake_case", "snake-case"),
    ],
)
def test_a_label_becomes_a_readable_file_name(label: str, name: str) -> None:
    assert slug(label) == name


@pytest.mark.parametrize("label", ["", "???", "con", "LPT1", "x" * 300, "é" * 300, "\ud800"])
def test_a_label_that_makes_no_file_name_gets_a_hash(label: str) -> None:
    name = slug(label)
    assert name == slug(label) != slug(label + "!?" if label != "???" else "")
    assert name[-9] == "-"
    assert len(name.encode()) <= 80
