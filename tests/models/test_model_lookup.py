"""From a name to a model: what is missing is told before anything is asked, and nothing secret is shown."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lousho_cli.cli.errors import exit_code
from lousho_cli.config import load_settings
from lousho_cli.errors import ConfigurationError
from lousho_cli.providers.models import lookup
from lousho_cli.providers.models.catalog import VENDORS
from lousho_cli.providers.models.discovery import discover_model
from lousho_cli.providers.models.lookup import find_real_model
from lousho_cli.providers.models.servers import Server
from lousho_cli.providers.resolve import resolve_model

SECRET = "s3cret-0123456789"
NO_OLLAMA = {"OLLAMA_HOST": "127.0.0.1:1"}


def refused(name: str, environ: Mapping[str, str] | None = None, **servers: Server) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as error:
        find_real_model(name, servers, environ or {})
    return error.value


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_is_there", lambda module: True)


@pytest.mark.usefixtures("everything_installed")
@pytest.mark.parametrize("name", [name for name, vendor in VENDORS.items() if vendor.needs_key])
def test_a_missing_key_names_the_variables(name: str) -> None:
    error = refused(f"{name}:some-model")
    assert error.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    for variable in VENDORS[name].keys:
        assert variable in str(error)
    assert exit_code(error) == 2
    key = {VENDORS[name].keys[-1]: SECRET}
    assert find_real_model(f"{name}:some-model", {}, key).model == f"{name}:some-model"


@pytest.mark.parametrize("name", VENDORS)
def test_a_missing_package_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_is_there", lambda module: module == "pydantic_ai")
    error = refused(f"{name}:some-model")
    assert error.code == "LOUSHO_PEER_MISSING"
    assert error.hint == f'pip install "lousho-cli[{VENDORS[name].extra}]"'
    assert exit_code(error) == 2


def test_an_unknown_provider_suggests_the_likely_one() -> None:
    error = refused("antropic:claude")
    assert error.code == "LOUSHO_CONFIG_MISSING_PROVIDER"
    assert "did you mean 'anthropic'?" in error.hint
    assert "[providers.antropic]" in error.hint


def test_a_name_without_a_provider_or_a_model_says_how_to_write_it(tmp_path: Path) -> None:
    assert "openai:MODEL" in refused("openai:").hint
    with pytest.raises(ConfigurationError, match="no model 'gpt-5'") as error:
        resolve_model("gpt-5", tmp_path)
    assert "provider:model" in error.value.hint


@pytest.mark.usefixtures("everything_installed")
def test_a_server_of_ones_own_needs_no_key_unless_it_says_so() -> None:
    place = "http://127.0.0.1:8080/v1"
    assert find_real_model("mine:any", {"mine": Server(place)}, {}).model == "mine:any"
    error = refused("mine:any", mine=Server(place, "MINE_KEY"))
    assert error.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    assert "MINE_KEY" in str(error)
    error = refused("mine:any", mine=Server(place, headers={"X-Token": "${TOKEN_OF_MINE}"}))
    assert error.code == "LOUSHO_PROVIDER_MISSING_API_KEY"
    assert "TOKEN_OF_MINE" in str(error)
    assert "base_url" in str(refused("mine:any", mine=Server()))


@pytest.mark.usefixtures("everything_installed")
def test_no_secret_is_in_what_a_model_says_of_itself() -> None:
    headers = {"X-Token": "${TOKEN}"}
    environ = {"K": SECRET, "TOKEN": f"{SECRET}-token"}
    model = find_real_model("mine:any", {"mine": Server("http://h/v1", "K", headers)}, environ)
    assert SECRET not in repr(model)
    assert SECRET not in repr(vars(model))


def test_a_config_file_sets_up_servers_the_workspaces_over_the_users(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[providers.mine]\nbase_url = "http://h:1/v1"\nheaders = { X-Team = "blue", X-Key = "Bearer ${T}" }\n'
    )
    (server,) = load_settings(tmp_path, environ={}).providers.values()
    assert (server.base_url, dict(server.headers)) == (
        "http://h:1/v1",
        {"X-Team": "blue", "X-Key": "Bearer ${T}"},
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('base_ur = "http://h"', "did you mean 'base_url'?"),
        ("base_url = 3", "base_url takes text"),
        ('base_url = "h:80"', "http://127.0.0.1:8080/v1"),
        (f'base_url = "http://me:{SECRET}@h"', "use a header"),
        (f'headers = {{ Authorization = "{SECRET}" }}', "${MY_VARIABLE}"),
        (f'headers = {{ X-Thing = "Bearer {SECRET}" }}', "${MY_VARIABLE}"),
        (f'headers = {{ X-Thing = "sk-{SECRET}" }}', "${MY_VARIABLE}"),
        ("headers = { X-Thing = 1 }", "headers takes texts by name"),
    ],
)
def test_a_mistake_in_a_config_file_says_where_and_what_to_write(
    lines: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(f"[providers.mine]\n{lines}\n")
    with pytest.raises(ConfigurationError) as error:
        load_settings(tmp_path, environ={})
    assert "[providers.mine]" in str(error.value)
    assert said in error.value.hint
    assert SECRET not in str(error.value) + error.value.hint


@pytest.mark.usefixtures("everything_installed")
def test_without_a_name_the_first_provider_with_a_key_is_found() -> None:
    found = discover_model({**NO_OLLAMA, "GROQ_API_KEY": "k", "OPENAI_API_KEY": "k"})
    assert (found.model, found.why) == ("openai:gpt-5.6-luna", "OPENAI_API_KEY is set")
    assert discover_model(NO_OLLAMA).model == "demo"


def test_a_key_whose_package_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_is_there", lambda module: False)
    found = discover_model({**NO_OLLAMA, "OPENAI_API_KEY": SECRET})
    assert found.model == "demo"
    assert found.why == 'OPENAI_API_KEY is set, but for it you need: pip install "lousho-cli[openai]"'


class Ollama(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"models": [{"name": "qwen3:8b"}, {"name": "other"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def ollama() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Ollama) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("everything_installed")
def test_without_a_key_a_running_ollama_is_found(ollama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lousho_cli.providers.models.discovery.PROBE_SECONDS", 30)
    found = discover_model({"OLLAMA_HOST": ollama})
    assert (found.model, found.why) == ("ollama:qwen3:8b", f"Ollama runs at http://{ollama}")
    assert find_real_model(found.model, {}, {"OLLAMA_HOST": ollama}).model == "ollama:qwen3:8b"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434"),
        ({"OLLAMA_HOST": "box:99"}, "http://box:99"),
        ({"OLLAMA_HOST": "https://box"}, "https://box"),
        ({"OLLAMA_BASE_URL": "http://box:99/v1", "OLLAMA_HOST": "other"}, "http://box:99"),
    ],
)
def test_ollama_is_where_its_own_variables_say(given: dict[str, str], address: str) -> None:
    assert lookup.ollama_address(given) == address


def test_looking_a_model_up_imports_no_library() -> None:
    code = (
        "import sys\n"
        "from lousho_cli.providers.models.lookup import find_real_model\n"
        "from lousho_cli.errors import ConfigurationError\n"
        "try:\n"
        "    find_real_model('openai:gpt-5', {}, {'OPENAI_API_KEY': 'k'})\n"
        "except ConfigurationError as error:\n"
        "    assert error.code == 'LOUSHO_PEER_MISSING', error\n"
        "heavy = {'pydantic_ai', 'openai', 'httpx', 'httpx2', 'genai_prices'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_models_found_by_their_keys_are_ones_the_library_knows() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.models import known_model_names

    chosen = {f"{name}:{vendor.first_choice}" for name, vendor in VENDORS.items() if vendor.first_choice}
    assert chosen <= set(known_model_names())
