from __future__ import annotations

from pathlib import Path

import pytest

from lousho_cli.config import load_settings
from lousho_cli.errors import ConfigurationError
from lousho_cli.stores.backend_location import parse_location

GOOD = (
    "file", "sqlite:sessions.db", "sqlite:/var/lib/x.db", "sqlite:../x", "redis://localhost",
    "redis://ann:s3cret@host:6380/3?socket_timeout=5", "rediss://:s3cret@host/0", "valkey://host:1",
    "redis://%40:p%2Fw@host",
)  # fmt: skip
WRONG = (
    ("sqlite", "sqlite:PATH"), ("sqlite:", "sqlite:PATH"), ("sqlite::memory:", "sqlite:PATH"),
    ("sqlite:///x.db", "sqlite:PATH"), ("sqlit:x.db", 'did you mean "sqlite:PATH"?'),
    ("sessions.db", 'did you mean "sqlite:PATH"?'), ("files", 'did you mean "file"?'),
    ("redis", 'did you mean "redis://HOST:PORT/DATABASE"?'),
    ("reddis://ann:s3cret@host", 'did you mean "redis://HOST:PORT/DATABASE"?'),
    ("redis:s3cret@host", 'did you mean "redis://'), ("redis://host/s3cret", "the database is a number"),
    ("redis://:s3cret", "the port is a number"), ("redis://:12/s3cret@host", "write / as %2F"),
    ("redis://:12#s3cret@host", "# as %23"), ("redis://:1?s3cret@host", "? as %3F"),
    ("redis://[s3cret", "write / as %2F"), ("mysql://ann:s3cret@host/x", '"file" or "sqlite:PATH" or'),
)  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_each_form_of_a_store_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(f'store = "{text}"')
    assert load_settings(tmp_path, environ={}).store == text
    assert load_settings(environ={"LOUSHO_STORE": text}).store == text


@pytest.mark.parametrize(("text", "hint"), WRONG)
def test_a_wrong_one_says_where_it_stands_and_what_to_write(tmp_path: Path, text: str, hint: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'model = "m"\nstore = "{text}"\n')
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path, environ={})
    assert caught.value.message.startswith(f"{file}, line 2: store cannot be ")
    assert hint in caught.value.hint
    with pytest.raises(ConfigurationError, match="LOUSHO_STORE cannot be ") as caught:
        load_settings(environ={"LOUSHO_STORE": text})
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in f"{error} {getattr(error, 'hint', '')}"
        error = error.__cause__


@pytest.mark.parametrize("text", GOOD)
def test_no_password_is_shown(text: str) -> None:
    location = parse_location(text)
    settings = load_settings(environ={"LOUSHO_STORE": text})
    assert "s3cret" not in f"{location.shown} {location!r} {settings!r}"
    assert "ann" not in location.shown
    if location.kind == "sqlite":
        assert location.shown == text.removeprefix("sqlite:")
