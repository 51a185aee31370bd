# SPDX-License-Identifier: Apache-2.0
"""What the commands for boards, bundles and builds do."""

from __future__ import annotations

import argparse

import arenite
from arenite._commands.shared import NO, YES, show, shown_progress, update_key
from arenite._text import firmware as firmware_text
from arenite.errors import UsageError

__all__ = [
    "boards",
    "boards_add",
    "build",
    "bundle",
    "fit",
]


def boards(arguments: argparse.Namespace) -> int:
    """`arenite boards`."""
    return show(arguments, arenite.boards(), firmware_text.boards)


def boards_add(arguments: argparse.Namespace) -> int:
    """`arenite boards add FILE`."""
    return show(arguments, arenite.add_board(arguments.file), firmware_text.added_board)


def fit(arguments: argparse.Namespace) -> int:
    """`arenite fit MODEL`: exit 1 when the model fits none of the boards."""
    report = arenite.fit(arguments.model, arguments.boards, progress=shown_progress())
    show(arguments, report, firmware_text.board_fits)
    return YES if report.fits_somewhere else NO


def bundle(arguments: argparse.Namespace) -> int:
    """`arenite bundle MODEL... --board B -o DIR`."""
    report = arenite.bundle(
        arguments.models,
        arguments.board,
        arguments.out,
        arena_bytes=arguments.arena_bytes,
        float_ends=arguments.float_ends,
        row_fed=_row_fed(arguments),
        max_mac_factor=arguments.max_mac_factor,
        caller_inputs=_positions(arguments.caller_input),
        caller_outputs=_positions(arguments.caller_output),
        keep_input=arguments.keep_input,
        optimise=arguments.optimize,
        guards=arguments.guards,
        camera=arguments.camera,
        exports=arguments.export,
        app=arguments.app,
        baud=arguments.baud,
        slot=arguments.slot,
        model_slots=arguments.model_slots,
        update_key=update_key(arguments.update_key),
        force=arguments.force,
        progress=shown_progress(),
    )
    return show(arguments, report, firmware_text.bundle)


def _row_fed(arguments: argparse.Namespace) -> list[bool]:
    """Which of the models are fed row by row."""
    unknown = set(arguments.row_fed_model) - set(arguments.models)
    if unknown:
        problem = f"--row-fed-model {min(unknown)} is none of the models to bundle"
        raise UsageError(problem, cure="Give the same path as MODEL.")
    return [arguments.row_fed or model in arguments.row_fed_model for model in arguments.models]


def _positions(chosen: list[int | None]) -> bool | list[int]:
    return None in chosen or [position for position in chosen if position is not None]


def build(arguments: argparse.Namespace) -> int:
    """`arenite build DIR`; with --model-for its model alone, for a slot."""
    if arguments.model_for is not None:
        return _build_model(arguments)
    report = arenite.build(
        arguments.bundle, arguments.toolchain, optimise=arguments.optimize, progress=shown_progress()
    )
    return show(arguments, report, firmware_text.build)


def _build_model(arguments: argparse.Namespace) -> int:
    if arguments.slot is None:
        raise UsageError("--slot must be given with --model-for", cure="Give 0 or 1: `arenite update state` says which")
    report = arenite.build_model(arguments.bundle, arguments.model_for, arguments.slot)
    return show(arguments, report, firmware_text.model_slot)
