# SPDX-License-Identifier: Apache-2.0
"""Options of the commands for boards, bundles and builds."""

from __future__ import annotations

import argparse
from typing import Any

from arenite._options.base import command, names, positive

__all__ = [
    "add_boards",
    "add_build",
    "add_bundle",
    "add_fit",
]

_OPTIMISE = ("size", "balanced", "speed")


def add_boards(commands: Any) -> None:
    """`arenite boards`."""
    text = "List the boards: core, memories and what each is good for, how far proven."
    parser = command(commands, "boards", text, "firmware.boards")
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    text = "Check a board file of your own, and keep it so that `--board` knows its name."
    add = command(actions, "add", text, "firmware.boards_add")
    add.add_argument("file", metavar="FILE", help="a board.toml under any name, or the folder that holds one")


def add_fit(commands: Any) -> None:
    """`arenite fit`."""
    text = "Try a model on boards: fits or not, which memory is short, what would help. Exit 1 when it fits none."
    parser = command(commands, "fit", text, "firmware.fit")
    parser.add_argument("model", metavar="MODEL", help="a full-INT8 .tflite file")
    which = "names or board.toml files, with commas between (default: all that are real hardware)"
    parser.add_argument("--boards", type=names, metavar="NAMES", help=which)


def add_bundle(commands: Any) -> None:
    """`arenite bundle`."""
    parser = command(commands, "bundle", "Compile .tflite files to a C firmware bundle for a board.", "firmware.bundle")
    models = "a full-INT8 .tflite file; several share one arena and run one at a time"
    parser.add_argument("models", metavar="MODEL", nargs="+", help=models)
    parser.add_argument("--board", required=True, metavar="BOARD", help="name of a board, or a board.toml file")
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--arena-bytes", type=positive, metavar="N", help="fail when the plan needs more than N bytes")
    ends = "leave float32 inputs and outputs that the model quantises itself; else the board takes its integers"
    parser.add_argument("--float-ends", action="store_true", help=ends)
    which = "a position, counted from 0, or `all`; repeat the option for several"
    parser.add_argument(
        "--caller-input",
        type=_position,
        action="append",
        default=[],
        metavar="N",
        help=f"an input in memory that the application gives at run time: {which}",
    )
    parser.add_argument(
        "--caller-output", type=_position, action="append", default=[], metavar="N", help="the same for an output"
    )
    parser.add_argument("--keep-input", action="store_true", help="a run leaves the inputs as they are")
    parser.add_argument("--row-fed", action="store_true", help="take the input row by row; the frame is never stored")
    fed = "of several models, take this one's input row by row; repeat the option for more"
    parser.add_argument("--row-fed-model", action="append", default=[], metavar="MODEL", help=fed)
    optimize = "choose and compile kernels for this (default: speed); `size` takes the fewest that run all layers"
    parser.add_argument("--optimize", choices=_OPTIMISE, default="speed", help=optimize)
    guards = "make a validation build, which watches a word behind every block of the arena"
    parser.add_argument("--guards", action="store_true", help=guards)
    camera = "add the C that makes the input of such frames, as 320x240:RGB565 or 640x480:YUYV:bt709:full"
    parser.add_argument("--camera", metavar="FRAME", help=camera)
    formats = "cmake, make, single-file, arduino, platformio, esp-idf, zephyr"
    export = f"add a component for a project of yours; repeat the option for several: {formats}"
    parser.add_argument("--export", action="append", default=[], metavar="FORMAT", help=export)
    parser.add_argument(
        "--max-mac-factor",
        type=float,
        default=1.0,
        metavar="F",
        help="let up to F times the multiply-accumulates run where that makes the arena smaller (default 1.0)",
    )
    application = "link (default), mlperf, or mlperf-energy: what the firmware speaks at its serial port"
    parser.add_argument("--app", default="link", metavar="NAME", help=application)
    slot = "firmware for slot 0 or 1 of a board with slots for updates, and the loader"
    parser.add_argument("--slot", type=int, choices=(0, 1), metavar="N", help=slot)
    models = "the model may be replaced alone, in the board's slots for models"
    parser.add_argument("--model-slots", action="store_true", help=models)
    key = "public key of who may sign updates, for --slot and --model-slots"
    parser.add_argument("--update-key", metavar="FILE", help=key)
    baud = "of the serial port (default: the board's, or what MLPerf Tiny says)"
    parser.add_argument("--baud", type=positive, metavar="N", help=baud)
    parser.add_argument("--force", action="store_true", help="replace the folder even if it is no bundle")


def _position(text: str) -> int | None:
    """None is all of them."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a position, counted from 0, nor `all`")
    return int(text)


def add_build(commands: Any) -> None:
    """`arenite build`."""
    parser = command(commands, "build", "Compile a bundle to firmware.", "firmware.build")
    parser.add_argument("bundle", metavar="DIR", help="a folder made by `arenite bundle`")
    parser.add_argument("--toolchain", metavar="NAME", help="zig or gcc; by default gcc when it is on PATH")
    parser.add_argument(
        "--optimize",
        choices=_OPTIMISE,
        help="how kernels and executor are compiled (default: what the bundle was made for)",
    )
    model_for = "link the bundle's model alone, for a slot of a board with this firmware: a built bundle"
    parser.add_argument("--model-for", metavar="FIRMWARE", help=model_for)
    parser.add_argument("--slot", type=int, choices=(0, 1), metavar="N", help="which slot, for --model-for")
