# SPDX-License-Identifier: Apache-2.0
"""What the commands for a board on a line do."""

from __future__ import annotations

import argparse
from pathlib import Path

import arenite
from arenite._commands.shared import NO, YES, check_writable, chosen, show, shown_progress
from arenite._text import device as device_text
from arenite.errors import UsageError

__all__ = [
    "estimate",
    "flash",
    "profile",
    "update_keygen",
    "update_send",
    "update_show",
    "update_sign",
    "update_state",
    "verify",
]


def verify(arguments: argparse.Namespace) -> int:
    """`arenite verify DIR --on emulator|PORT`: exit 1 when a byte differs."""
    options = chosen(arguments, "random", "seed", "timeout_s", "baud")
    report = arenite.verify(arguments.bundle, on=arguments.on, progress=shown_progress(), **options)
    show(arguments, report, device_text.verification)
    return YES if report.identical else NO


def profile(arguments: argparse.Namespace) -> int:
    """`arenite profile DIR --on emulator|PORT`."""
    check_writable(arguments.html)
    options = {"model": arguments.model, "meter": arguments.meter, "baud": arguments.baud}
    report = arenite.profile(arguments.bundle, on=arguments.on, progress=shown_progress(), **options)
    if arguments.html is not None:
        from arenite.profile_page import profile_page

        Path(arguments.html).write_text(profile_page(report), encoding="utf-8")
    return show(arguments, report, device_text.profiling)


def estimate(arguments: argparse.Namespace) -> int:
    """`arenite estimate MODEL --board B`."""
    options = {"row_fed": arguments.row_fed, "uw_per_mhz": arguments.uw_per_mhz}
    clock_hz = None if arguments.clock_mhz is None else round(arguments.clock_mhz * 1e6)
    report = arenite.estimate(arguments.model, arguments.board, clock_hz=clock_hz, progress=shown_progress(), **options)
    return show(arguments, report, device_text.estimation)


def flash(arguments: argparse.Namespace) -> int:
    """`arenite flash DIR --port PORT`: exit 1 when it is the wrong chip, or a byte differs afterwards."""
    report = arenite.flash(
        arguments.bundle,
        arguments.port,
        reset=not arguments.no_reset,
        stub=not arguments.no_stub,
        dry_run=arguments.dry_run,
        check=not arguments.no_verify,
        verify_on=arguments.verify_on,
        image=None if arguments.image is None else Path(arguments.image).read_bytes(),
        progress=shown_progress(),
        **chosen(arguments, "baud"),
    )
    show(arguments, report, device_text.flashing)
    return YES if report.verification is None or report.verification.identical else NO


def update_keygen(arguments: argparse.Namespace) -> int:
    """`arenite update keygen FILE`."""
    from arenite.device import updating

    key = updating.make_key(Path(arguments.key))
    return show(arguments, {"key": arguments.key, "public_key": key}, device_text.update_key)


def update_sign(arguments: argparse.Namespace) -> int:
    """`arenite update sign PAYLOAD --key KEY --board B --version N -o FILE`."""
    from arenite.device import updating

    payload, key = Path(arguments.payload), updating.read_private_key(Path(arguments.key))
    if payload.is_dir():
        image = updating.sign_bundle(payload, key, version=arguments.version)
    elif arguments.board is None:
        raise UsageError("--board must be given", where=arguments.payload, cure="Give it, or a bundle for a slot.")
    else:
        image = updating.sign_image(
            payload.read_bytes(),
            key,
            kind=updating.Kind[arguments.kind.upper()],
            version=arguments.version,
            board=arguments.board,
            address=arguments.address,
            **chosen(arguments, "build"),
        )
    Path(arguments.out).write_bytes(image)
    return show(arguments, updating.read_header(image), device_text.update_image)


def update_show(arguments: argparse.Namespace) -> int:
    """`arenite update show IMAGE [--key KEY]`: exit 1 when the image is damaged or signed by another key."""
    from arenite.device import updating

    key = None if arguments.key is None else updating.read_public_key(Path(arguments.key))
    header = updating.read_header(Path(arguments.image).read_bytes(), key)
    return show(arguments, header, device_text.update_image)


def update_send(arguments: argparse.Namespace) -> int:
    """`arenite update send IMAGE --port PORT`: exit 1 when the board refuses it or goes back to what it ran before."""
    from arenite.device import open_device, updating

    image = Path(arguments.image).read_bytes()
    with open_device(arguments.port) as device:
        report = updating.send_image(device, image, confirm=not arguments.no_confirm, progress=shown_progress())
    return show(arguments, report, device_text.update_report)


def update_state(arguments: argparse.Namespace) -> int:
    """`arenite update state --port PORT`."""
    from arenite.device import open_device, updating

    with open_device(arguments.port) as device:
        state = updating.read_state(device, updating.Kind[arguments.kind.upper()])
    return show(arguments, state, device_text.update_state)
