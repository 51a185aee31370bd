# SPDX-License-Identifier: Apache-2.0
"""Options of the commands for a board on a line."""

from __future__ import annotations

import argparse
from typing import Any

from arenite._options.base import add_choice, command, positive, seconds_of

__all__ = [
    "add_estimate",
    "add_flash",
    "add_profile",
    "add_update",
    "add_verify",
]


def add_flash(commands: Any) -> None:
    """`arenite flash`."""
    text = "Flash a built bundle onto its board: exit 1 when the chip is another one or its flash differs afterwards."
    parser = command(commands, "flash", text, "device.flash")
    parser.add_argument("bundle", metavar="DIR", help="a folder built by `arenite build`")
    port = "serial port; the folder of a UF2 drive, or `auto`"
    parser.add_argument("--port", required=True, metavar="PORT", help=port)
    parser.add_argument("--baud", type=positive, metavar="N", help="speed while flashing (default: 115200)")
    parser.add_argument("--dry-run", action="store_true", help="ask the chip and compare; erase and write nothing")
    reset = "the board is in its loader already: do not reset it, before or after"
    parser.add_argument("--no-reset", action="store_true", help=reset)
    parser.add_argument("--no-stub", action="store_true", help="ESP32: only the loader in ROM, nothing in RAM")
    parser.add_argument("--no-verify", action="store_true", help="do not run the golden vectors afterwards")
    answers = "where the firmware answers, if that is another port: of a UF2 board its serial port"
    parser.add_argument("--verify-on", metavar="PORT", help=answers)
    image = "signed image of a bundle that is for a slot; the loader is flashed before it"
    parser.add_argument("--image", metavar="FILE", help=image)


def add_update(commands: Any) -> None:
    """`arenite update`."""
    text = "Replace firmware or a model of a board in the field: signed images, two slots, a way back."
    parser = commands.add_parser("update", help=text, description=text, allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    make = command(
        actions, "keygen", "Make a key pair; its public half goes into the firmware.", "device.update_keygen"
    )
    make.add_argument("key", metavar="FILE", help="the PEM file to write; keep it secret and do not lose it")
    sign = command(actions, "sign", "Make a signed image.", "device.update_sign")
    payload = "a bundle that was built for a slot, or a file of the bytes that lie behind the header"
    sign.add_argument("payload", metavar="PAYLOAD", help=payload)
    sign.add_argument("--key", required=True, metavar="FILE", help="private key")
    sign.add_argument("--board", metavar="NAME", help="the board it is for; a bundle knows it")
    sign.add_argument("--version", required=True, type=positive, metavar="N", help="higher than what runs")
    add_choice(sign, "--kind", ("firmware", "model"), "what it replaces (default: firmware)")
    build = "of a model: digest of the firmware build that it is linked against, 64 hexadecimal digits"
    sign.add_argument("--build", type=bytes.fromhex, metavar="HEX", help=build)
    address = "of the slot that it is linked for (default: any)"
    sign.add_argument("--address", type=_address, default=0, metavar="N", help=address)
    sign.add_argument("-o", "--out", required=True, metavar="FILE", help="the image to write")
    sign.set_defaults(kind="firmware")
    show = command(actions, "show", "Check an image: exit 1 when it is damaged.", "device.update_show")
    show.add_argument("image", metavar="IMAGE", help="a signed image")
    show.add_argument("--key", metavar="FILE", help="check the signature by this key, either half")
    send = command(actions, "send", "Send an image, restart the board, confirm what then runs.", "device.update_send")
    send.add_argument("image", metavar="IMAGE", help="a signed image")
    send.add_argument("--port", required=True, metavar="PORT", help="serial port")
    trial = "leave it on trial: unless confirmed, the next restart goes back"
    send.add_argument("--no-confirm", action="store_true", help=trial)
    state = command(actions, "state", "Say what the board's slots hold.", "device.update_state")
    state.add_argument("--port", required=True, metavar="PORT", help="serial port")
    add_choice(state, "--kind", ("firmware", "model"), "which slots (default: firmware)")
    state.set_defaults(kind="firmware")


def _address(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no address") from None


def add_verify(commands: Any) -> None:
    """`arenite verify`."""
    parser = command(
        commands, "verify", "Run a built bundle on its golden vectors and compare every byte.", "device.verify"
    )
    parser.add_argument("bundle", metavar="DIR", help="a folder built by `arenite build`")
    _add_where(parser)
    more = "random vectors of each model beside the bundle's own (default: 0)"
    parser.add_argument("--random", type=_count, default=0, metavar="N", help=more)
    parser.add_argument("--seed", type=_count, default=0, metavar="N", help="of the random vectors (default: 0)")
    limit = "seconds for everything; a board that hangs is named then (default: 3600)"
    parser.add_argument("--timeout", dest="timeout_s", type=seconds_of, default=3600.0, metavar="S", help=limit)


def add_profile(commands: Any) -> None:
    """`arenite profile`."""
    parser = command(
        commands, "profile", "Say where an inference on a board spends its time, layer by layer.", "device.profile"
    )
    parser.add_argument("bundle", metavar="DIR", help="a folder built by `arenite build`")
    _add_where(parser)
    parser.add_argument("--model", type=_count, default=0, metavar="N", help="of a bundle of several (default: 0)")
    parser.add_argument("--meter", metavar="NAME", help="meter of the board's supply, such as ppk2:/dev/ttyACM1")
    parser.add_argument("--html", metavar="FILE", help="write a page with a bar for each layer")


def add_estimate(commands: Any) -> None:
    """`arenite estimate`."""
    parser = command(
        commands, "estimate", "Say how long a model takes on a board that is not here: modelled.", "device.estimate"
    )
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
    parser.add_argument("--baud", type=positive, metavar="N", help="rate of a serial port (default: the board's)")


def _count(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return value
