# SPDX-License-Identifier: Apache-2.0
"""The one place that renders templates."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from arenite.errors import MissingToolError

__all__ = ["c_string", "render"]


def render(template: str, context: Mapping[str, Any], folder: Path | None = None) -> str:
    """A template with its values; a value that is missing is an error.

    Args:
        folder: Where the template lies; None for `templates/` beside this module.

    Raises:
        MissingToolError: Jinja2 is not installed.
        FileNotFoundError: There is no such template, or none that it includes.
    """
    environment = _environment(str(folder or resources.files("arenite_codegen") / "templates"))
    try:
        found = environment.get_template(template)
    except import_module("jinja2").TemplateNotFound as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), error.name) from error
    text: str = found.render(context)
    return text


@lru_cache
def _environment(folder: str) -> Any:
    """One for each folder: it keeps the templates that it compiled, which took longer than all else in emitting."""
    try:
        jinja2 = import_module("jinja2")
    except ImportError as error:
        raise MissingToolError("Jinja2 is not installed", cure="Install it: pip install 'arenite[firmware]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["c_string"] = c_string
    environment.filters["comment"] = _comment
    return environment


def c_string(text: str) -> str:
    """A C string literal of any text: whatever could end it, start an escape or form a trigraph becomes octal."""
    safe = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in safe else f"\\{b:03o}" for b in text.encode("utf-8")) + '"'


def _comment(text: str) -> str:
    """Any text inside a C comment: on one line, and without what would end it."""
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text).replace("*/", "* /")
