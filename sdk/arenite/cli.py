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
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from arenite._reports import print_json
from arenite._text.lines import printable
from arenite.comparison import STATISTICS
from arenite.contract import CLASS_MEANINGS, COLOURS, CROPS, FILTERS, NORMALISATIONS
from arenite.coreml_package import PRECISIONS as COREML_PRECISIONS
from arenite.engines import ENGINES
from arenite.errors import AreniteError, OutputError, UsageError
from arenite.machine import installed_version
from arenite.scenarios import DRIVERS, SCENARIOS

__all__ = ["main"]

_INTERRUPTED = 130
_OPTIMISE = ("size", "balanced", "speed")
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
        return AreniteError(
            "there is not enough memory", cure="Close other programs or take a smaller model."
        )
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    reason = (error.strerror or str(error)).lower()
    if error.errno in _FULL_DISK:
        return OutputError(reason, where=where, cure="Free some space and run the command again.")
    if isinstance(error, FileNotFoundError):
        return UsageError(reason, where=where, cure="Check the path.")
    if isinstance(error, PermissionError):
        return OutputError(reason, where=where, cure="Check the permissions or choose another path.")
    return AreniteError(reason, where=where, cure="Check the path and the device behind it.")


class _Parser(argparse.ArgumentParser):
    """Usage errors take the same way out as every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, cure=f"See `{self.prog} --help`.")

    def _print_message(self, message: str, file: Any = None) -> None:
        # The original hides that the disk is full.
        if message:
            (file or sys.stderr).write(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="arenite",
        description="One trained model to every place without a server.",
        epilog="Exit 0 yes, 1 the answer is no, 2 usage or environment.",
        allow_abbrev=False,
    )
    version = installed_version("arenite") or "(not installed)"
    parser.add_argument("--version", action="version", version=f"arenite {version}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_convert(commands)
    _add_inspect(commands)
    _add_contract(commands)
    _add_skew(commands)
    _add_boards(commands)
    _add_fit(commands)
    _add_bundle(commands)
    _add_build(commands)
    _add_flash(commands)
    _add_update(commands)
    _add_verify(commands)
    _add_profile(commands)
    _add_estimate(commands)
    _add_bench(commands)
    _add_compare(commands)
    _add_compare_models(commands)
    _add_energy(commands)
    _add_doctor(commands)
    return parser


def _command(commands: Any, name: str, text: str, function: str = "") -> argparse.ArgumentParser:
    """A command that `_commands` has a function for: that of its name unless another is named."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON on standard output")
    parser.add_argument("--debug", action="store_true", help="print a traceback with an error")
    parser.set_defaults(run=_lazily(function or name))
    return parser


def _lazily(name: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        from arenite import _commands

        function: Callable[[argparse.Namespace], int] = getattr(_commands, name.replace("-", "_"))
        return function(arguments)

    return run


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not at least 1")
    return value


def _position(text: str) -> int | None:
    """None is all of them."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a position, counted from 0, nor `all`")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 3600")
    return value


def _add_convert(commands: Any) -> None:
    text = "Convert a trained model to quantised TFLite or to a Core ML package, with its contract inside."
    parser = _command(commands, "convert", text)
    sources = ".keras, .h5, .onnx, .tflite or .pt2 file, SavedModel folder, or package.module:factory of PyTorch"
    parser.add_argument("source", metavar="MODEL", nargs="?", help=f"{sources} (default: the recipe's)")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="the .tflite file or .mlpackage to write")
    samples = "a picture, a folder of them, or an .npy or .npz file; repeat the option for several"
    parser.add_argument("--calibration", action="append", metavar="PATH", help=samples)
    parser.add_argument("--evaluation", action="append", metavar="PATH", help=f"held out: {samples}")
    serving = f"what the application will see, to say how far calibration is from it: {samples}"
    parser.add_argument("--serving-sample", action="append", metavar="PATH", help=serving)
    shape = "for a model with open dimensions, in its own order without the batch: 224 224 3"
    parser.add_argument("--input-shape", nargs="+", type=_positive, metavar="N", help=shape)
    parser.add_argument("--signature", metavar="NAME", help="function of a SavedModel (default: serving_default)")
    parser.add_argument("--weights", metavar="FILE", help="state dict for a PyTorch factory")
    _add_contract_options(parser)
    _add_limits(parser)
    report = "write the report as a page, or as JSON when it is named *.json; repeat the option for both"
    parser.add_argument("--report", action="append", default=[], metavar="FILE", help=report)
    parser.add_argument("--save-recipe", metavar="FILE", help="write the whole choice as JSON")
    _add_choice(parser, "--precision", COREML_PRECISIONS, "of an .mlpackage (default: float16)")
    mac = "write a script and golden vectors beside an .mlpackage, for a Mac to run"
    parser.add_argument("--verify-on-mac", action="store_true", default=None, help=mac)
    recipe = "run such a file again; options given beside it take the place of its own"
    parser.add_argument("--recipe", metavar="FILE", help=recipe)


def _add_contract_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", metavar="FILE", help="class names, one a line")
    _add_choice(parser, "--normalisation", tuple(NORMALISATIONS), "how the model was trained")
    _add_choice(parser, "--colour", COLOURS, "order of the channels (default: RGB, or GREY for one channel)")
    _add_choice(parser, "--crop", CROPS, "part of a picture that is taken (default: none)")
    parser.add_argument("--crop-fraction", type=float, metavar="F", help="part of a centre crop that is kept")
    _add_choice(parser, "--filter", FILTERS, "resize filter (default: bilinear)")
    _add_choice(parser, "--meaning", CLASS_MEANINGS, "of the output (default: known by itself after a softmax)")
    _add_quantising(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    noise = "the answer is no when the output's signal to noise ratio is lower (default: 5)"
    parser.add_argument("--min-sqnr-db", type=float, metavar="DB", help=noise)
    share = "the answer is no when a smaller share of samples gets the same class (default: 0)"
    parser.add_argument("--min-top1", type=float, metavar="SHARE", help=share)


def _add_quantising(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("quantising")
    _add_choice(group, "--quantise", ("int8", "int16x8", "float16", "dynamic"), "precision (default: int8)")
    _add_choice(group, "--io", ("int8", "uint8"), "type of input and output of an int8 model (default: int8)")
    backends = ("litert", "tensorflow")
    _add_choice(group, "--backend", backends, "library (default: litert; tensorflow where that leaves float)")
    estimators = ("min-max", "percentile", "mse", "entropy")
    _add_choice(group, "--ranges", estimators, "estimator of the activations' ranges (default: percentile)")
    switches = (
        ("rounding", "round weights by least squares (default: yes)"),
        ("bias-correction", "take each channel's mean error out (default: yes)"),
        ("equalise", "equalise the channels of neighbouring layers first (default: no)"),
    )
    for name, text in switches:
        group.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, help=text)
    kept = "layers that stay float: first, last or parts of names, with commas between"
    group.add_argument("--keep-float", type=_names, metavar="NAMES", help=kept)
    drop = "keep the most sensitive layers float until at most this percentage of the answers changes"
    group.add_argument("--max-drop", type=float, metavar="PERCENT", help=drop)
    alone = "quantise each layer alone too, and report what that does to the answers"
    group.add_argument("--sensitivity", action="store_true", default=None, help=alone)
    search = "try several settings, take the one that agrees best with float"
    group.add_argument("--search", action="store_true", default=None, help=search)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _add_choice(parser: argparse._ActionsContainer, option: str, choices: Sequence[str], text: str) -> None:
    parser.add_argument(option, choices=choices, metavar="NAME", help=f"{text}: {', '.join(choices)}")


def _add_inspect(commands: Any) -> None:
    parser = _command(commands, "inspect", "Show a model's inputs, outputs, operators and contract.")
    parser.add_argument("model", metavar="MODEL", help="a .tflite file")
    parser.add_argument(
        "--picture", metavar="FILE", help="measure the fast preprocessing on this (default: on a synthetic one)"
    )


def _add_contract(commands: Any) -> None:
    text = "Show, change or check the contract that a model carries."
    parser = commands.add_parser("contract", help=text, description=text, allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    model = "a .tflite, .onnx, .mlpackage or .mlmodel file"
    show = _command(actions, "show", "Print each field: exit 1 when the model carries none.", "contract_show")
    show.add_argument("model", metavar="MODEL", help=model)
    text = "Find all that is wrong: fields, the model's tensors, ranges, golden vectors. Exit 1 when something is."
    check = _command(actions, "check", text, "contract_check")
    check.add_argument("model", metavar="MODEL", help=model)
    text = "Write a copy of a model with other values in its contract; one without a contract gets one."
    change = _command(actions, "set", text, "contract_set")
    change.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    change.add_argument("-o", "--out", required=True, metavar="FILE", help="the file to write; may be the same")
    change.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", type=_assignment,
        help="such as input.picture.colour=BGR; the value is JSON or a text; repeat the option for several",
    )
    change.add_argument("--from", dest="merge", metavar="FILE", help="a contract, whole or in part, as JSON")
    change.add_argument("--labels", metavar="FILE", help="class names of the first output, one a line")


def _assignment(text: str) -> tuple[str, Any]:
    field, sign, value = text.partition("=")
    if not field or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=VALUE")
    try:
        return field, json.loads(value)
    except (ValueError, RecursionError):
        return field, value


def _add_skew(commands: Any) -> None:
    text = "Take a picture to the answer by the libraries that models are trained with; say which step differs."
    parser = _command(commands, "skew", text)
    parser.add_argument("model", metavar="MODEL", help="a model with a contract")
    parser.add_argument("picture", metavar="PICTURE", help="a picture file")
    _add_choice(parser, "--engine", tuple(ENGINES), "what runs the model (default: the first that is installed)")


def _add_boards(commands: Any) -> None:
    text = "List the boards: core, memories and what each is good for, how far proven."
    parser = _command(commands, "boards", text)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    text = "Check a board file of your own, and keep it so that `--board` knows its name."
    add = _command(actions, "add", text, "boards_add")
    add.add_argument("file", metavar="FILE", help="a board.toml under any name, or the folder that holds one")


def _add_fit(commands: Any) -> None:
    text = "Try a model on boards: fits or not, which memory is short, what would help. Exit 1 when it fits none."
    parser = _command(commands, "fit", text)
    parser.add_argument("model", metavar="MODEL", help="a full-INT8 .tflite file")
    which = "names or board.toml files, with commas between (default: all that are real hardware)"
    parser.add_argument("--boards", type=_names, metavar="NAMES", help=which)


def _add_bundle(commands: Any) -> None:
    parser = _command(commands, "bundle", "Compile .tflite files to a C firmware bundle for a board.")
    models = "a full-INT8 .tflite file; several share one arena and run one at a time"
    parser.add_argument("models", metavar="MODEL", nargs="+", help=models)
    parser.add_argument("--board", required=True, metavar="BOARD", help="name of a board, or a board.toml file")
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="the folder to write")
    parser.add_argument(
        "--arena-bytes", type=_positive, metavar="N", help="fail when the plan needs more than N bytes"
    )
    ends = "leave float32 inputs and outputs that the model quantises itself; else the board takes its integers"
    parser.add_argument("--float-ends", action="store_true", help=ends)
    which = "a position, counted from 0, or `all`; repeat the option for several"
    parser.add_argument(
        "--caller-input", type=_position, action="append", default=[], metavar="N",
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
    parser.add_argument("--baud", type=_positive, metavar="N", help=baud)
    parser.add_argument("--force", action="store_true", help="replace the folder even if it is no bundle")


def _add_build(commands: Any) -> None:
    parser = _command(commands, "build", "Compile a bundle to firmware.")
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


def _add_verify(commands: Any) -> None:
    parser = _command(commands, "verify", "Run a built bundle on its golden vectors and compare every byte.")
    parser.add_argument("bundle", metavar="DIR", help="a folder built by `arenite build`")
    _add_where(parser)
    more = "random vectors of each model beside the bundle's own (default: 0)"
    parser.add_argument("--random", type=_count, default=0, metavar="N", help=more)
    parser.add_argument("--seed", type=_count, default=0, metavar="N", help="of the random vectors (default: 0)")
    limit = "seconds for everything; a board that hangs is named then (default: 3600)"
    parser.add_argument("--timeout", dest="timeout_s", type=_seconds, default=3600.0, metavar="S", help=limit)


def _add_profile(commands: Any) -> None:
    parser = _command(commands, "profile", "Say where an inference on a board spends its time, layer by layer.")
    parser.add_argument("bundle", metavar="DIR", help="a folder built by `arenite build`")
    _add_where(parser)
    parser.add_argument("--model", type=_count, default=0, metavar="N", help="of a bundle of several (default: 0)")
    parser.add_argument("--meter", metavar="NAME", help="meter of the board's supply, such as ppk2:/dev/ttyACM1")
    parser.add_argument("--html", metavar="FILE", help="write a page with a bar for each layer")


def _add_estimate(commands: Any) -> None:
    parser = _command(commands, "estimate", "Say how long a model takes on a board that is not here: modelled.")
    parser.add_argument("model", metavar="MODEL", help="a full-INT8 .tflite file")
    parser.add_argument("--board", required=True, metavar="NAME", help="name or path of a board: arenite boards")
    parser.add_argument("--clock-mhz", type=_megahertz, metavar="F", help="clock of the core (default: the board's)")
    parser.add_argument("--row-fed", action="store_true", help="the input comes row by row")
    power = "power of the running core in µW/MHz (default: that of the board file)"
    parser.add_argument("--uw-per-mhz", type=_megahertz, metavar="F", help=power)


def _megahertz(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.001 <= value <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0.001 to 100000")
    return value


def _add_where(parser: argparse.ArgumentParser) -> None:
    where = "emulator (default), unicorn, qemu, a serial port, socket://..., rfc2217://... or usb:VID:PID"
    parser.add_argument("--on", default="emulator", metavar="WHERE", help=where)
    parser.add_argument("--baud", type=_positive, metavar="N", help="rate of a serial port (default: the board's)")


def _count(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return value


def _add_flash(commands: Any) -> None:
    text = "Flash a built bundle onto its board: exit 1 when the chip is another one or its flash differs afterwards."
    parser = _command(commands, "flash", text)
    parser.add_argument("bundle", metavar="DIR", help="a folder built by `arenite build`")
    port = "serial port; the folder of a UF2 drive, or `auto`"
    parser.add_argument("--port", required=True, metavar="PORT", help=port)
    parser.add_argument("--baud", type=_positive, metavar="N", help="speed while flashing (default: 115200)")
    parser.add_argument("--dry-run", action="store_true", help="ask the chip and compare; erase and write nothing")
    reset = "the board is in its loader already: do not reset it, before or after"
    parser.add_argument("--no-reset", action="store_true", help=reset)
    parser.add_argument("--no-stub", action="store_true", help="ESP32: only the loader in ROM, nothing in RAM")
    parser.add_argument("--no-verify", action="store_true", help="do not run the golden vectors afterwards")
    answers = "where the firmware answers, if that is another port: of a UF2 board its serial port"
    parser.add_argument("--verify-on", metavar="PORT", help=answers)
    image = "signed image of a bundle that is for a slot; the loader is flashed before it"
    parser.add_argument("--image", metavar="FILE", help=image)


def _add_update(commands: Any) -> None:
    text = "Replace firmware or a model of a board in the field: signed images, two slots, a way back."
    parser = commands.add_parser("update", help=text, description=text, allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    make = _command(actions, "keygen", "Make a key pair; its public half goes into the firmware.", "update_keygen")
    make.add_argument("key", metavar="FILE", help="the PEM file to write; keep it secret and do not lose it")
    sign = _command(actions, "sign", "Make a signed image.", "update_sign")
    payload = "a bundle that was built for a slot, or a file of the bytes that lie behind the header"
    sign.add_argument("payload", metavar="PAYLOAD", help=payload)
    sign.add_argument("--key", required=True, metavar="FILE", help="private key")
    sign.add_argument("--board", metavar="NAME", help="the board it is for; a bundle knows it")
    sign.add_argument("--version", required=True, type=_positive, metavar="N", help="higher than what runs")
    _add_choice(sign, "--kind", ("firmware", "model"), "what it replaces (default: firmware)")
    build = "of a model: digest of the firmware build that it is linked against, 64 hexadecimal digits"
    sign.add_argument("--build", type=bytes.fromhex, metavar="HEX", help=build)
    address = "of the slot that it is linked for (default: any)"
    sign.add_argument("--address", type=_address, default=0, metavar="N", help=address)
    sign.add_argument("-o", "--out", required=True, metavar="FILE", help="the image to write")
    sign.set_defaults(kind="firmware")
    show = _command(actions, "show", "Check an image: exit 1 when it is damaged.", "update_show")
    show.add_argument("image", metavar="IMAGE", help="a signed image")
    show.add_argument("--key", metavar="FILE", help="check the signature by this key, either half")
    send = _command(actions, "send", "Send an image, restart the board, confirm what then runs.", "update_send")
    send.add_argument("image", metavar="IMAGE", help="a signed image")
    send.add_argument("--port", required=True, metavar="PORT", help="serial port")
    trial = "leave it on trial: unless confirmed, the next restart goes back"
    send.add_argument("--no-confirm", action="store_true", help=trial)
    state = _command(actions, "state", "Say what the board's slots hold.", "update_state")
    state.add_argument("--port", required=True, metavar="PORT", help="serial port")
    _add_choice(state, "--kind", ("firmware", "model"), "which slots (default: firmware)")
    state.set_defaults(kind="firmware")


def _address(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no address") from None


def _add_bench(commands: Any) -> None:
    text = "Time a model in this process by a scenario of MLPerf Inference."
    parser = _command(commands, "bench", text)
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    pictures = "time the whole pipeline on a picture or a folder of them; repeat the option for several"
    parser.add_argument("--picture", action="append", default=[], metavar="PATH", help=pictures)
    scenario = f"one of {', '.join(SCENARIOS)} (default: SingleStream, one inference after another)"
    parser.add_argument("--scenario", choices=SCENARIOS, default="SingleStream", metavar="NAME", help=scenario)
    parser.add_argument(
        "--count", type=_positive, default=100, metavar="N", help="time at least N queries (default: 100)"
    )
    seconds = "time at least S seconds (default: 1; a valid run takes 600)"
    parser.add_argument("--seconds", type=_seconds, default=1.0, metavar="S", help=seconds)
    _add_choice(parser, "--driver", DRIVERS, "what issues the queries (default: LoadGen where it is installed)")
    parser.add_argument("--out", metavar="DIR", help="keep bench.json and LoadGen's logs in this folder")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
    _add_engine_options(parser)
    _add_meter_options(parser)


def _add_engine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=_positive, default=1, metavar="N", help="engine threads (default: 1)")
    _add_choice(parser, "--engine", tuple(ENGINES), "what runs the model (default: the first that is installed)")
    delegate = "its accelerator: coreml: ane, gpu, cpu; onnxruntime: cuda, tensorrt, qnn; litert: a delegate's library"
    parser.add_argument("--delegate", metavar="NAME", help=delegate)


def _add_meter_options(parser: argparse.ArgumentParser) -> None:
    meter = "rapl, jetson, ppk2:PORT?mv=3300, ... (default: the best of this machine; see `arenite doctor`)"
    parser.add_argument("--meter", metavar="NAME", help=meter)
    parser.add_argument("--energy-model", metavar="FILE", help="declared costs (TOML), used when there is no meter")


def _add_compare(commands: Any) -> None:
    text = "Compare two benchmarks of one model on one kind of machine: exit 1 when the second is slower."
    parser = _command(commands, "compare", text)
    parser.add_argument("before", metavar="BEFORE", help="JSON of `arenite bench`, or a folder of several runs")
    parser.add_argument("after", metavar="AFTER", help="the same of the second")
    by = f"judge by one of {', '.join(STATISTICS)} (default: p50)"
    parser.add_argument("--by", choices=STATISTICS, default="p50", metavar="NAME", help=by)
    limit = "slower is only what takes more than F times as long (default: 1)"
    parser.add_argument("--max-ratio", type=float, default=1.0, metavar="F", help=limit)


def _add_compare_models(commands: Any) -> None:
    text = "Run two models on the same pictures: exit 1 when the second does not agree with the first."
    parser = _command(commands, "compare-models", text)
    parser.add_argument("first", metavar="A", help="what is right: any model that a session opens")
    parser.add_argument("second", metavar="B", help="the one in question")
    samples = "a picture, a folder of them, or an .npy or .npz file; repeat the option for several"
    parser.add_argument("--pictures", required=True, action="append", metavar="PATH", help=samples)
    _add_contract_options(parser)
    _add_limits(parser)
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")


def _add_energy(commands: Any) -> None:
    text = "Measure the energy of an inference, whole and stage by stage."
    parser = _command(commands, "energy", text)
    parser.add_argument("model", metavar="MODEL", help="a .tflite file")
    pictures = "measure the whole pipeline on a picture or a folder of them; repeat the option for several"
    parser.add_argument("--picture", action="append", default=[], metavar="PATH", help=pictures)
    _add_meter_options(parser)
    parser.add_argument(
        "--duration", type=_seconds, default=10.0, metavar="S", help="measure S seconds, idle apart (default: 10)"
    )
    parser.add_argument("--battery-wh", type=float, metavar="WH", help="say how many inferences such a battery gives")
    against = "measure the same there next and show both side by side (--engine coreml --delegate ane, coreml:cpu)"
    parser.add_argument("--against", metavar="ENGINE[:DELEGATE]", help=against)
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
    _add_engine_options(parser)


def _add_doctor(commands: Any) -> None:
    _command(commands, "doctor", "Say which engines, compilers, emulators and meters are here, and how to get more.")
