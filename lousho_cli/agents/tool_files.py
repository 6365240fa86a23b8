"""Importing the tool files of an agent's folder.

The files of a folder are the modules of a private package of their own: they may import one another with
`from .helpers import ...`, and neither `sys.path` nor the names of other modules are touched. Nothing is
written beside them: they are compiled anew each time.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
import traceback
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from ..errors import ConfigurationError
from ..execution.tools import Tool
from .definition import list_folder


def import_tools(folder: Path) -> list[Tool]:
    """The tools that the `*.py` files of `folder` define or import, file by file, in the order of definition.

    What a file prints while it is imported goes to stderr.

    Raises:
        ConfigurationError: a file does not import, or two different tools share a name.
    """
    folder = folder.absolute()
    if folder.is_file():
        raise ConfigurationError(f"{folder} is not a folder", hint="put the tools into files inside it")
    files = [folder / name for name in list_folder(folder) if name.endswith(".py") and name[0] != "."]
    if not files:
        return []
    package = _make_package(folder)
    try:
        return _distinct((file, _tools_of(package, file)) for file in files)
    except BaseException:
        _forget(package)
        raise


def _make_package(folder: Path) -> str:
    digest = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    name = f"_lousho_tools_{digest[:16]}"
    _forget(name)
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.path_importer_cache[str(folder)] = FileFinder(str(folder), (_UncachedLoader, [".py"]))
    sys.modules[name] = module_from_spec(spec)
    return name


class _UncachedLoader(SourceFileLoader):
    """Compiles a source file each time; without its times, no compiled copy is looked up or written."""

    def path_stats(self, path: object) -> dict[str, int]:
        raise OSError("compiled copies are not used")


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


def _tools_of(package: str, file: Path) -> list[Tool]:
    if "." in file.stem:
        raise ConfigurationError(
            f"{file} cannot be imported: its name has a dot before .py", hint="rename the file"
        )
    if not file.is_file():
        raise ConfigurationError(f"{file} cannot be imported: it is not a file", hint="take it away")
    try:
        with redirect_stdout(_Prints()):
            module = importlib.import_module(f"{package}.{file.stem}")
    except KeyboardInterrupt:
        raise
    # A tool file may do anything while it is imported, an exit request included; it is that file's error.
    except BaseException as error:
        raise _does_not_import(file, error) from error
    return _tools_in(module)


class _Prints(io.TextIOBase):
    """What an imported file prints goes to stderr, which it cannot close."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)


def _tools_in(module: ModuleType) -> list[Tool]:
    return [value for value in vars(module).values() if isinstance(value, Tool)]


def _distinct(found: Iterable[tuple[Path, list[Tool]]]) -> list[Tool]:
    by_name: dict[str, tuple[Path, Tool]] = {}
    for file, tools in found:
        for tool in tools:
            first_file, first = by_name.setdefault(tool.name, (file, tool))
            if first is not tool:
                raise ConfigurationError(
                    f"two tools are named {tool.name!r}: in {first_file} and in {file}",
                    hint="rename one, or give it @tool(name=...)",
                )
    return [tool for _, tool in by_name.values()]


def _does_not_import(file: Path, error: BaseException) -> ConfigurationError:
    where, line, source = _place(file, error)
    place = f"{where}, line {line}" if line else str(where)
    shown = f", in `{source}`" if source else ""
    message = f"{place} does not import: {_describe(error)}{shown}"
    return ConfigurationError(message, hint=_advice(file, error))


def _place(file: Path, error: BaseException) -> tuple[Path, int | None, str]:
    """The file of the folder, its line and that line's text where importing went wrong."""
    folder = file.parent
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).parent == folder:
        return Path(error.filename), error.lineno, (error.text or "").strip()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).parent == folder and frame.lineno:
            return Path(frame.filename), frame.lineno, (frame.line or "").strip()
    return file, None, ""


def _describe(error: BaseException) -> str:
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:
        text = "(its text cannot be shown)"
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def _advice(file: Path, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        if (file.parent / f"{error.name}.py").is_file():
            return f"import a file of the same folder with a dot: from .{error.name} import ..."
        package = error.name.partition(".")[0]
        return f"install {package} into the Python that runs lousho, or correct the import"
    return "correct the file"
