from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lousho_cli.errors import ConfigurationError
from lousho_cli.stores.ids import MAX_NAME_LENGTH, check_id, decode_id, encode_id

ids = st.text(
    st.one_of(st.characters(exclude_categories=["Cc", "Cs"]), st.sampled_from("aA.+%~/\\:é -_con1")),
    min_size=1,
    max_size=200,
).filter(lambda id: bool(id.strip(".")))


@given(ids)
@example("trip.fork-1")
@example("..a..")
@example("A" * 200)
@example("é" * 60)
@example("e\u0301")
def test_a_name_gives_its_id_back_unless_it_is_hashed(id: str) -> None:
    name = encode_id(id)
    assert decode_id(name) == (None if "~" in name else id)


@given(ids)
@example("CON")
@example("nul.txt")
@example("lpt9.a.b")
@example("😀" * 75)
@example("." + "A" * 199)
def test_f23_a_name_is_a_safe_file_name_everywhere(id: str) -> None:
    name = encode_id(id)
    assert set(name) <= set(string.ascii_lowercase + string.digits + "._-+%~")
    assert 0 < len(name) <= MAX_NAME_LENGTH
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert not re.match(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", name)


@given(ids, ids)
@example("Chat", "chat")
@example("\u00e9", "e\u0301")
@example("a+b", "aB")
@example("%41", "A")
@example("x" * 199 + "a", "x" * 199 + "b")
def test_f45_two_ids_never_share_a_name_even_where_case_is_ignored(a: str, b: str) -> None:
    assert (encode_id(a).casefold() == encode_id(b).casefold()) == (a == b)


@given(st.text(max_size=60))
@example("+A")
@example("%2E")
@example("Chat")
@example("%0a")
@example("%2e%2e")
@example("%ff")
@example("%zz")
@example("%63on")
def test_only_names_that_ids_are_given_are_decoded(name: str) -> None:
    id = decode_id(name)
    assert id is None or encode_id(id) == name


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("trip.fork-1", "trip.fork-1"),
        ("chat_42", "chat_42"),
        ("MyBot", "+my+bot"),
        ("bot:1", "bot%3a1"),
        ("../../escape", "%2e.%2f..%2fescape"),
        ("a\\b", "a%5cb"),
        ("x.", "x%2e"),
        (" ", "%20"),
        ("nul.txt", "%6eul.txt"),
        ("CON", "+c+o+n"),
        ("conx", "conx"),
        ("CONIN$", "+c+o+n+i+n%24"),
        ("é", "%c3%a9"),
    ],
)
def test_names_stay_readable(id: str, name: str) -> None:
    assert encode_id(id) == name
    assert decode_id(name) == id


def test_a_long_name_keeps_a_readable_beginning_and_cuts_no_escape() -> None:
    assert re.fullmatch(r"a{80}~[0-9a-f]{32}", encode_id("a" * 161))
    assert re.fullmatch(r"(\+x){40}~[0-9a-f]{32}", encode_id("X" * 81))
    assert re.fullmatch(r"a(\+x){39}~[0-9a-f]{32}", encode_id("a" + "X" * 81))
    assert re.fullmatch(r"(%2f){26}~[0-9a-f]{32}", encode_id("/" * 81))
    assert encode_id("a" * 160) == "a" * 160


@pytest.mark.parametrize(
    "id", ["", ".", "..", "." * 10, "a\nb", "\x1b[2J", "a\x00", "\x7f", "\x9b", "a" * 201, "\ud83d"]
)
def test_f23_what_is_no_id_is_refused_and_shown_escaped(id: str) -> None:
    for use in (check_id, encode_id):
        with pytest.raises(ConfigurationError) as caught:
            use(id)
        assert caught.value.code == "LOUSHO_SESSION_ID_INVALID"
        assert caught.value.message.isprintable()
        assert repr(id[:200]) in caught.value.message
        assert caught.value.hint


@pytest.mark.parametrize(
    "id", ["a", "x y", "a/b", "..a", "*", "[a]", "@last", "\u2028", "👩\u200d💻", "é" * 200]
)
def test_any_other_text_is_an_id(id: str) -> None:
    assert check_id(id) == id


def test_the_error_says_what_the_id_names() -> None:
    with pytest.raises(ConfigurationError, match="an agent id"):
        check_id("..", "agent")
    with pytest.raises(ConfigurationError, match="a session id"):
        check_id("..")
