# SPDX-License-Identifier: Apache-2.0
"""The command line: `arenite convert | inspect | contract | skew | boards | fit | bundle | build | flash | verify |
profile | estimate | bench | compare | compare-models | energy | doctor`.

Each command is thin over one function that returns a dataclass; `--json` prints that dataclass.

    exit 0   yes
    exit 1   the answer is no: it does not fit, it differs, a check failed
    exit 2   usage or environment: an argument, a file, a package, a compiler
    exit 130 interrupted
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from arenite._options import device, firmware, measurements, models
from arenite._options.base import Parser
from arenite._reports import print_json
from arenite._text.lines import printable
from arenite.errors import AreniteError, OutputError, UsageError
from arenite.machine import installed_version

__all__ = ["main"]

_INTERRUPTED = 130
_FULL_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: Arguments after the program's name; None takes the process's own.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    as_json, debug = "--json" in words, "--debug" in words
    _mend_streams()
    try:
        return _run(words)
    except BrokenPipeError:
        # The reader went away, as `| head` does: nothing is wrong, and nothing more can be written.
        _drop_output()
        return 0
    except KeyboardInterrupt:
        _say("\narenite: interrupted")
        return _INTERRUPTED
    except AreniteError as error:
        return _fail(error, as_json, debug)
    except (OSError, MemoryError) as error:
        return _fail(_environment_error(error), as_json, debug)
    except Exception as error:
        what = f"this is a fault in Arenite, {type(error).__name__}: {error}"
        cure = "Run the command again with --debug and report what it prints."
        return _fail(AreniteError(what, cure=cure), as_json, debug)


def _run(words: Sequence[str]) -> int:
    # Flushed here, a full disk is an error like every other; at the interpreter's end it would be a traceback.
    try:
        arguments = _parser().parse_args(words)
    except SystemExit:
        sys.stdout.flush()
        raise
    code = int(arguments.run(arguments))
    sys.stdout.flush()
    return code


def _mend_streams() -> None:
    """Streams that were closed swallow what is written; what a stream cannot encode is shown as an escape."""
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _drop_output() -> None:
    """What is still to be written to standard output goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _fail(error: AreniteError, as_json: bool, debug: bool) -> int:
    if debug:
        _say(traceback.format_exc().rstrip())
    try:
        if as_json:
            record = {"type": type(error).__name__, "what": error.what, "where": error.where, "cure": error.cure}
            print_json({"error": record})
        sys.stdout.flush()
    except OSError:
        _drop_output()
    _say(f"arenite: error: {printable(str(error))}")
    return error.exit_code


def _environment_error(error: OSError | MemoryError) -> AreniteError:
    if isinstance(error, MemoryError):
        return AreniteError("there is not enough memory", cure="Close other programs or take a smaller model.")
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    reason = (error.strerror or str(error)).lower()
    if error.errno in _FULL_DISK:
        return OutputError(reason, where=where, cure="Free some space and run the command again.")
    if isinstance(error, FileNotFoundError):
        return UsageError(reason, where=where, cure="Check the path.")
    if isinstance(error, PermissionError):
        return OutputError(reason, where=where, cure="Check the permissions or choose another path.")
    return AreniteError(reason, where=where, cure="Check the path and the device behind it.")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="arenite",
        description="One trained model to every place without a server.",
        epilog="Exit 0 yes, 1 the answer is no, 2 usage or environment.",
        allow_abbrev=False,
    )
    version = installed_version("arenite") or "(not installed)"
    parser.add_argument("--version", action="version", version=f"arenite {version}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    models.add_convert(commands)
    models.add_inspect(commands)
    models.add_contract(commands)
    models.add_skew(commands)
    firmware.add_boards(commands)
    firmware.add_fit(commands)
    firmware.add_bundle(commands)
    firmware.add_build(commands)
    device.add_flash(commands)
    device.add_update(commands)
    device.add_verify(commands)
    device.add_profile(commands)
    device.add_estimate(commands)
    measurements.add_bench(commands)
    measurements.add_compare(commands)
    models.add_compare_models(commands)
    measurements.add_energy(commands)
    measurements.add_doctor(commands)
    return parser
