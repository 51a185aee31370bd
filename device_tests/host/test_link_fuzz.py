# SPDX-License-Identifier: Apache-2.0
"""A slice of `device_tests/support/link_fuzz.py`, which runs a million frames at each end."""

from __future__ import annotations

from pathlib import Path

from support.link_fuzz import fuzz_device, fuzz_host
from support.link_harness import LinkHarness, build_harness

FRAMES = 5_000


def test_the_device_survives_hostile_frames(tmp_path: Path) -> None:
    harness = LinkHarness(build_harness(tmp_path))
    answered, probes = fuzz_device(harness, FRAMES, seed=1)
    assert answered > FRAMES // 3  # four in ten are whole
    assert probes > FRAMES // 5
    harness.close()


def test_the_host_survives_hostile_frames() -> None:
    understood = fuzz_host(FRAMES, seed=2)
    assert FRAMES // 3 < understood < FRAMES
