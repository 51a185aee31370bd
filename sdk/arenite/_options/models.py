# SPDX-License-Identifier: Apache-2.0
"""Options of the commands for models, contracts and conversions."""

from __future__ import annotations

import argparse
import json
from typing import Any

from arenite._options.base import add_choice, command, names, positive
from arenite.contract import CLASS_MEANINGS, COLOURS, CROPS, FILTERS, NORMALISATIONS
from arenite.coreml_package import PRECISIONS as COREML_PRECISIONS
from arenite.engines import ENGINES

__all__ = [
    "add_compare_models",
    "add_contract",
    "add_convert",
    "add_inspect",
    "add_skew",
]


def add_convert(commands: Any) -> None:
    """`arenite convert`."""
    text = "Convert a trained model to quantised TFLite or to a Core ML package, with its contract inside."
    parser = command(commands, "convert", text, "models.convert")
    sources = ".keras, .h5, .onnx, .tflite or .pt2 file, SavedModel folder, or package.module:factory of PyTorch"
    parser.add_argument("source", metavar="MODEL", nargs="?", help=f"{sources} (default: the recipe's)")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="the .tflite file or .mlpackage to write")
    samples = "a picture, a folder of them, or an .npy or .npz file; repeat the option for several"
    parser.add_argument("--calibration", action="append", metavar="PATH", help=samples)
    parser.add_argument("--evaluation", action="append", metavar="PATH", help=f"held out: {samples}")
    serving = f"what the application will see, to say how far calibration is from it: {samples}"
    parser.add_argument("--serving-sample", action="append", metavar="PATH", help=serving)
    shape = "for a model with open dimensions, in its own order without the batch: 224 224 3"
    parser.add_argument("--input-shape", nargs="+", type=positive, metavar="N", help=shape)
    parser.add_argument("--signature", metavar="NAME", help="function of a SavedModel (default: serving_default)")
    parser.add_argument("--weights", metavar="FILE", help="state dict for a PyTorch factory")
    _add_contract_options(parser)
    _add_limits(parser)
    report = "write the report as a page, or as JSON when it is named *.json; repeat the option for both"
    parser.add_argument("--report", action="append", default=[], metavar="FILE", help=report)
    parser.add_argument("--save-recipe", metavar="FILE", help="write the whole choice as JSON")
    add_choice(parser, "--precision", COREML_PRECISIONS, "of an .mlpackage (default: float16)")
    mac = "write a script and golden vectors beside an .mlpackage, for a Mac to run"
    parser.add_argument("--verify-on-mac", action="store_true", default=None, help=mac)
    recipe = "run such a file again; options given beside it take the place of its own"
    parser.add_argument("--recipe", metavar="FILE", help=recipe)


def _add_contract_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", metavar="FILE", help="class names, one a line")
    add_choice(parser, "--normalisation", tuple(NORMALISATIONS), "how the model was trained")
    add_choice(parser, "--colour", COLOURS, "order of the channels (default: RGB, or GREY for one channel)")
    add_choice(parser, "--crop", CROPS, "part of a picture that is taken (default: none)")
    parser.add_argument("--crop-fraction", type=float, metavar="F", help="part of a centre crop that is kept")
    add_choice(parser, "--filter", FILTERS, "resize filter (default: bilinear)")
    add_choice(parser, "--meaning", CLASS_MEANINGS, "of the output (default: known by itself after a softmax)")
    _add_quantising(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    noise = "the answer is no when the output's signal to noise ratio is lower (default: 5)"
    parser.add_argument("--min-sqnr-db", type=float, metavar="DB", help=noise)
    share = "the answer is no when a smaller share of samples gets the same class (default: 0)"
    parser.add_argument("--min-top1", type=float, metavar="SHARE", help=share)


def _add_quantising(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("quantising")
    add_choice(group, "--quantise", ("int8", "int16x8", "float16", "dynamic"), "precision (default: int8)")
    add_choice(group, "--io", ("int8", "uint8"), "type of input and output of an int8 model (default: int8)")
    backends = ("litert", "tensorflow")
    add_choice(group, "--backend", backends, "library (default: litert; tensorflow where that leaves float)")
    estimators = ("min-max", "percentile", "mse", "entropy")
    add_choice(group, "--ranges", estimators, "estimator of the activations' ranges (default: percentile)")
    switches = (
        ("rounding", "round weights by least squares (default: yes)"),
        ("bias-correction", "take each channel's mean error out (default: yes)"),
        ("equalise", "equalise the channels of neighbouring layers first (default: no)"),
    )
    for name, text in switches:
        group.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, help=text)
    kept = "layers that stay float: first, last or parts of names, with commas between"
    group.add_argument("--keep-float", type=names, metavar="NAMES", help=kept)
    drop = "keep the most sensitive layers float until at most this percentage of the answers changes"
    group.add_argument("--max-drop", type=float, metavar="PERCENT", help=drop)
    alone = "quantise each layer alone too, and report what that does to the answers"
    group.add_argument("--sensitivity", action="store_true", default=None, help=alone)
    search = "try several settings, take the one that agrees best with float"
    group.add_argument("--search", action="store_true", default=None, help=search)


def add_inspect(commands: Any) -> None:
    """`arenite inspect`."""
    parser = command(commands, "inspect", "Show a model's inputs, outputs, operators and contract.", "models.inspect")
    parser.add_argument("model", metavar="MODEL", help="a .tflite file")
    parser.add_argument(
        "--picture", metavar="FILE", help="measure the fast preprocessing on this (default: on a synthetic one)"
    )


def add_contract(commands: Any) -> None:
    """`arenite contract`."""
    text = "Show, change or check the contract that a model carries."
    parser = commands.add_parser("contract", help=text, description=text, allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    model = "a .tflite, .onnx, .mlpackage or .mlmodel file"
    show = command(actions, "show", "Print each field: exit 1 when the model carries none.", "models.contract_show")
    show.add_argument("model", metavar="MODEL", help=model)
    text = "Find all that is wrong: fields, the model's tensors, ranges, golden vectors. Exit 1 when something is."
    check = command(actions, "check", text, "models.contract_check")
    check.add_argument("model", metavar="MODEL", help=model)
    text = "Write a copy of a model with other values in its contract; one without a contract gets one."
    change = command(actions, "set", text, "models.contract_set")
    change.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    change.add_argument("-o", "--out", required=True, metavar="FILE", help="the file to write; may be the same")
    change.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        type=_assignment,
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


def add_skew(commands: Any) -> None:
    """`arenite skew`."""
    text = "Take a picture to the answer by the libraries that models are trained with; say which step differs."
    parser = command(commands, "skew", text, "models.skew")
    parser.add_argument("model", metavar="MODEL", help="a model with a contract")
    parser.add_argument("picture", metavar="PICTURE", help="a picture file")
    add_choice(parser, "--engine", tuple(ENGINES), "what runs the model (default: the first that is installed)")


def add_compare_models(commands: Any) -> None:
    """`arenite compare-models`."""
    text = "Run two models on the same pictures: exit 1 when the second does not agree with the first."
    parser = command(commands, "compare-models", text, "models.compare_models")
    parser.add_argument("first", metavar="A", help="what is right: any model that a session opens")
    parser.add_argument("second", metavar="B", help="the one in question")
    samples = "a picture, a folder of them, or an .npy or .npz file; repeat the option for several"
    parser.add_argument("--pictures", required=True, action="append", metavar="PATH", help=samples)
    _add_contract_options(parser)
    _add_limits(parser)
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
