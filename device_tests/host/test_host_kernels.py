# SPDX-License-Identifier: Apache-2.0
"""The kernels for computers: every level of instructions that this processor has gives the reference's bytes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.legalise import legalise
from arenite_codegen.rounding import multiply_by_quantised_multiplier, wrap_int32
from arenite_codegen.variants import VARIANTS, Variant, choose_for
from arenite_codegen.variants.host import ADD, ADD_LINEAR, CONV_2D
from support.emission import KERNELS
from support.graph_batch import ISA_LEVELS
from support.graphs import random_graph
from support.host_compiler import HostCompiler, find_compiler
from support.random_graphs_cli import check_graphs

Array = npt.NDArray[Any]
LEVELS = [name for name in ISA_LEVELS if name not in ("portable", "dsp")]
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PAD_CONV", "CONV_CHAIN")
_IN_C = 4
# Of all kinds; those of usual layers; to the right alone, which is one of 32 bits.
_SHIFTS = ((-31, 31), (-12, 1), (-24, 0))
# Channels and pixels that AVX-512 stores in four ways: 1, 2, 3 and 4 blocks of channels.
_SHAPES = ((16, 5), (32, 3), (48, 1), (64, 2), (11, 7))


def _shared_library(names: tuple[str, ...], folder: Path) -> ctypes.CDLL:
    compiler = find_compiler(sanitise=False)
    if compiler is None:
        pytest.skip("no C compiler: pip install 'arenite[firmware]'")
    sources = [KERNELS / f"arenite_{name}.c" for name in names]
    objects = compiler.compile(sources, [KERNELS], folder, "-fPIC")
    shared = folder / "kernels.so"
    subprocess.run([*compiler.command, "-shared", *map(str, objects), "-o", str(shared)], check=True)
    return ctypes.CDLL(str(shared))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The convolution for computers as a shared library."""
    return _shared_library(CONV_2D.files, tmp_path_factory.mktemp("host_kernels"))


@pytest.fixture(scope="module")
def add_library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The additions for computers as a shared library."""
    names = tuple(dict.fromkeys(ADD.files + ADD_LINEAR.files))
    return _shared_library(names, tmp_path_factory.mktemp("host_add"))


@pytest.fixture(params=LEVELS)
def isa(request: pytest.FixtureRequest, library: ctypes.CDLL) -> Iterator[str]:
    """A level, set in the library, or a skip on a processor without it."""
    name = str(request.param)
    if library.arenite_host_cap_isa(ISA_LEVELS[name]) != ISA_LEVELS[name]:
        pytest.skip(f"this processor has no {name}")
    yield name
    library.arenite_host_cap_isa(max(ISA_LEVELS.values()))


def test_random_graphs_equal_tflm(isa: str, compiler: HostCompiler, prebuilt: list[Path]) -> None:
    wanted = [(kind, 500 + seed) for seed in range(16) for kind in KINDS] + [("MOBILE_BLOCKS", 500)]
    result = list(check_graphs(wanted, compiler, prebuilt, isa=isa))[-1]
    assert result.failures == []
    assert sum(result.compared.values()) == len(wanted)


class _Conv(ctypes.Structure):
    """`arenite_conv_2d_s8_t`."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("weights", "bias", "multiplier", "shift")),
        *((name, ctypes.c_int32) for name in ("in_w", "in_c", "out_w", "out_c")),
        *((name, ctypes.c_int16) for name in ("kernel_h", "kernel_w", "stride_w", "dilation_w", "pad_left")),
        *((name, ctypes.c_int8) for name in ("in_zero_point", "out_zero_point", "act_min", "act_max")),
        ("per_channel", ctypes.c_uint8),
    ]


def _pointwise(library: ctypes.CDLL, row: Array, plain: Mapping[str, Any], own: Mapping[str, int]) -> Array:
    """A row [width][in_c] through a convolution of one tap; `plain` as lowerings give them."""
    width, in_c = row.shape
    out_c = len(plain["weights"])
    geometry = {"in_zero_point": 0, "kernel_h": 1, "kernel_w": 1, "in_c": in_c, "out_zero_point": own["zero_point"]}
    packed = dict(CONV_2D.pack({**plain, **geometry}))
    arrays = {name: np.ascontiguousarray(packed[name]) for name in ("weights", "bias", "multiplier", "shift")}
    params = _Conv(
        **{name: values.ctypes.data for name, values in arrays.items()},
        **dict.fromkeys(("kernel_h", "kernel_w", "stride_w", "dilation_w", "per_channel"), 1),
        in_w=width,
        in_c=in_c,
        out_w=width,
        out_c=out_c,
        out_zero_point=own["zero_point"],
        act_min=own["act_min"],
        act_max=127,
    )
    out = np.zeros((width, out_c), np.int8)
    rows = (ctypes.c_void_p * 1)(row.ctypes.data)
    library.arenite_conv_2d_s8_host(ctypes.byref(params), rows, ctypes.c_void_p(out.ctypes.data), 0, None)
    return out


def _requantised(
    library: ctypes.CDLL, acc: Array, multiplier: Array, shift: Array, pixels: int, own: Mapping[str, int]
) -> Array:
    """What the convolution makes of these accumulators: its weights are 0, so its bias is the sum of every pixel."""
    plain = {
        "weights": np.zeros((acc.size, 1, 1, _IN_C), np.int8),
        "bias": acc.astype(np.int32),
        "multiplier": multiplier.astype(np.int32),
        "shift": shift.astype(np.int8),
    }
    rows = _pointwise(library, np.zeros((pixels, _IN_C), np.int8), plain, own)
    assert (rows == rows[0]).all()
    return rows[0]


def _near_ties(generator: np.random.Generator, multiplier: Array, shift: Array) -> Array:
    """Accumulators whose result is near a byte, and as near as can be to the middle between two, or at int32's ends."""
    wanted = generator.integers(-260, 260, multiplier.size) / 2
    scale = multiplier.astype(np.float64) * 2.0 ** (shift.astype(np.float64) - 31)
    near = np.rint(wanted / np.where(scale == 0, 1.0, scale)) + generator.integers(-2, 3, multiplier.size)
    ends = generator.choice([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], multiplier.size)
    return np.where(generator.random(multiplier.size) < 0.1, ends, np.clip(near, -(2**31), 2**31 - 1)).astype(np.int64)


@pytest.mark.parametrize("clamps_negative", [False, True])
def test_requantisation_is_the_references(isa: str, library: ctypes.CDLL, clamps_negative: bool) -> None:
    """Every shift, multipliers at their ends, sums at the ties of both roundings."""
    generator = np.random.default_rng(5)
    for round_ in range(300):
        channels, pixels = _SHAPES[round_ % len(_SHAPES)]
        shift = generator.integers(*_SHIFTS[round_ % len(_SHIFTS)], channels)
        multiplier = generator.integers(2**30, 2**31, channels)
        edges = generator.choice([0, 2**30, 2**30 + 1, 2**31 - 1], channels)
        multiplier = np.where(generator.random(channels) < 0.3, edges, multiplier)
        acc = _near_ties(generator, multiplier, shift)
        zero_point = int(generator.integers(-128, 128))
        act_min = zero_point if clamps_negative else -128
        own = {"zero_point": zero_point, "act_min": act_min}
        got = _requantised(library, acc, multiplier, shift, pixels, own)
        for a, m, s, byte in zip(acc.tolist(), multiplier.tolist(), shift.tolist(), got.tolist(), strict=True):
            exact = wrap_int32(multiply_by_quantised_multiplier(a, m, s) + zero_point)
            assert byte == min(max(exact, act_min), 127), (a, m, s, zero_point)


@pytest.mark.parametrize("in_c", [5, 16, 2047, 2048, 2049, 2052])
def test_long_windows_and_extreme_products(isa: str, library: ctypes.CDLL, in_c: int) -> None:
    """Around what AVX2 widens ahead and AVX-512 loads at once, tiles of every size; most bytes are at their ends."""
    generator = np.random.default_rng(in_c)
    multiplier, shift = 1 << 30, -12
    for width in (*range(1, 10), 11, 19):
        out_c = int(generator.integers(1, 34))
        row = generator.choice(np.array([-128, -127, 127, 3], np.int8), (width, in_c))
        weights = generator.choice(np.array([-128, -127, 127, 5], np.int8), (out_c, in_c))
        bias = generator.integers(-(2**20), 2**20, out_c).astype(np.int32)
        plain = {
            "weights": weights.reshape(out_c, 1, 1, in_c),
            "bias": bias,
            "multiplier": np.full(out_c, multiplier, np.int32),
            "shift": np.full(out_c, shift, np.int8),
        }
        got = _pointwise(library, row, plain, {"zero_point": 3, "act_min": -128})
        sums = row.astype(np.int64) @ weights.T.astype(np.int64) + bias
        want = [multiply_by_quantised_multiplier(int(acc), multiplier, shift) + 3 for acc in sums.ravel()]
        assert got.ravel().tolist() == np.clip(want, -128, 127).tolist()


class _Add(ctypes.Structure):
    """`arenite_add_s8_t`."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("width", "channels", "a_pixel_step", "a_channel_step")),
        *((name, ctypes.c_int32) for name in ("b_pixel_step", "b_channel_step")),
        *((name, ctypes.c_int32) for name in ("a_multiplier", "b_multiplier", "out_multiplier")),
        *((name, ctypes.c_int8) for name in ("a_right_shift", "b_right_shift", "out_right_shift")),
        *((name, ctypes.c_int16) for name in ("a_zero_point", "b_zero_point", "out_zero_point")),
        *((name, ctypes.c_int16) for name in ("act_min", "act_max")),
    ]


def _random_addition(generator: np.random.Generator, round_: int) -> dict[str, int]:
    """One whose larger side is only halved, now this one and now that, or with no such side."""
    own: dict[str, int] = {"act_max": 127}
    for side in "ab":
        own[f"{side}_multiplier"] = int(generator.choice([2**30, 2**31 - 1, generator.integers(2**30, 2**31)]))
        own[f"{side}_right_shift"] = int(generator.choice([0, 1, 2, 5, 12, 31]))
        own[f"{side}_zero_point"] = int(generator.choice([-128, 127, generator.integers(-128, 128)]))
    if round_ % 3 < 2:
        larger = "ab"[round_ % 3]
        own |= {f"{larger}_multiplier": 2**30, f"{larger}_right_shift": 0}
    own["out_multiplier"], own["out_right_shift"] = int(generator.integers(2**30, 2**31)), 17 + round_ % 4
    own["out_zero_point"] = int(generator.integers(-128, 128))
    own["act_min"] = own["out_zero_point"] if round_ % 2 else -128
    return own


def _every_sum(own: Mapping[str, int]) -> Array:
    """What the reference makes of all pairs of bytes, [a][b]."""
    grid = {
        side: [
            multiply_by_quantised_multiplier(
                (x - own[f"{side}_zero_point"]) * 2**20, own[f"{side}_multiplier"], -own[f"{side}_right_shift"]
            )
            for x in range(-128, 128)
        ]
        for side in "ab"
    }
    sums = np.add.outer(grid["a"], grid["b"])
    totals, places = np.unique(sums, return_inverse=True)
    exact = [
        multiply_by_quantised_multiplier(total, own["out_multiplier"], -own["out_right_shift"])
        for total in totals.tolist()
    ]
    values = np.array(exact)[places].reshape(sums.shape) + own["out_zero_point"]
    return np.clip(values, own["act_min"], 127).astype(np.int8)


def _added(function: Any, own: Mapping[str, int], a: Array, b: Array) -> Array:
    """A row through a kernel."""
    out = np.zeros(a.size, np.int8)
    params = _Add(**own)
    rows = (ctypes.c_void_p * 2)(a.ctypes.data, b.ctypes.data)
    function(ctypes.byref(params), rows, ctypes.c_void_p(out.ctypes.data), 0, None)
    return out


@pytest.fixture(scope="module")
def additions() -> list[tuple[dict[str, int], Array]]:
    """Random ones, and what they make of all pairs of bytes."""
    generator = np.random.default_rng(9)
    owns = [_random_addition(generator, round_) for round_ in range(12)]
    return [(own | {"a_channel_step": 1, "b_channel_step": 1}, _every_sum(own)) for own in owns]


@pytest.mark.parametrize("variant", [ADD, ADD_LINEAR], ids=lambda variant: str(variant.name))
def test_every_pair_of_bytes_is_added_as_the_reference_does(
    isa: str, add_library: ctypes.CDLL, additions: list[tuple[dict[str, int], Array]], variant: Variant
) -> None:
    """As one run that fills vectors, and in runs of 83 bytes, which leave some over for every way to take them."""
    add_library.arenite_host_cap_isa(ISA_LEVELS[isa])
    function = getattr(add_library, f"arenite_{variant.function}")
    a, b = (np.ascontiguousarray(m.ravel()) for m in np.meshgrid(*2 * [np.arange(-128, 128, dtype=np.int8)]))
    taken = [(own, want) for own, want in additions if not variant.refusal(own)]
    for own, want in taken:
        for channels in (a.size, 83):
            width = a.size // channels
            geometry = dict.fromkeys(("channels", "a_pixel_step", "b_pixel_step"), channels) | {"width": width}
            got = _added(function, {**variant.pack(own), **geometry}, a, b)
            whole = width * channels
            assert np.array_equal(got[:whole], want.T.ravel()[:whole]), own
    assert len(taken) >= (12 if variant is ADD else 6)


@pytest.mark.parametrize("byte", [-128, 127])
def test_means_of_wide_rows_do_not_overflow(tmp_path: Path, byte: int) -> None:
    """Sums of 16 channels are held in 16 bits for a while; 257 pixels and more do not fit."""
    library = _shared_library(("average_pool_global_s8",), tmp_path)
    width, channels = 600, 35
    rows = np.full((2, width, channels), byte, np.int8)
    rows[1, :, ::2] = 1
    params = (ctypes.c_int32 * 4)(2, width, channels, 127 << 16 | 0xFF80)  # the last holds act_min -128 and act_max 127
    out, sums = np.zeros(channels, np.int8), np.full(channels, 12345, np.int32)
    for step in range(2):
        pointers = (ctypes.c_void_p * 1)(rows[step].ctypes.data)
        places = (ctypes.c_void_p(array.ctypes.data) for array in (out, sums))
        library.arenite_average_pool_global_s8(params, pointers, next(places), step, next(places))
    assert sums.tolist() == rows.astype(np.int64).sum(axis=(0, 1)).tolist()
    mean = [byte] * channels
    mean[::2] = [64 if byte > 0 else -64] * len(mean[::2])  # (127 + 1) / 2 and -63.5, half away from zero
    assert out.tolist() == mean


def test_a_cap_gives_a_level_that_the_processor_has(library: ctypes.CDLL) -> None:
    """Levels rise with the cap, none is above it, and without one the best is in use."""
    got = [library.arenite_host_cap_isa(cap) for cap in range(-1, 5)]
    library.arenite_host_cap_isa(max(ISA_LEVELS.values()))
    assert got[0] == got[1] == 0
    assert got == sorted(got)
    assert all(level <= max(cap, 0) for level, cap in zip(got, range(-1, 5), strict=True))
    assert got[-1] == library.arenite_host_isa() == got[-2]


def test_a_board_gets_the_variants_of_its_architecture(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(random_graph("CONV_2D", 8).model_bytes)
    rows = {board: bundle(path, board, tmp_path / board, vectors=0).operators for board in ("host", "qemu-riscv32")}
    assert rows["qemu-riscv32"][0].variant == "portable"
    assert not rows["qemu-riscv32"][0].passed_over
    assert rows["host"][0].variant in {"host", "host-taps"}


def test_a_layer_that_no_fast_kernel_takes_says_why() -> None:
    """Depthwise convolutions with a channel multiplier, and additions with a side broadcast over channels."""
    choose, seen = choose_for(load_board("host")), set()
    for kind in ("DEPTHWISE_CONV_2D", "ADD", "CONV_2D"):
        for seed in range(60):
            for layer in legalise(parse_graph(random_graph(kind, seed).model_bytes)).layers:
                choice = choose(layer)
                if layer.kernel in VARIANTS and choice.variant.name == "portable":
                    faster = [v for v in VARIANTS[layer.kernel] if v.architecture == "host"]
                    assert dict(choice.passed_over) == {v.name: v.refusal(layer.parameters) for v in faster}
                    assert all(choice.passed_over.values())
                    seen.add(layer.kernel)
    assert seen == {"depthwise_conv_2d_s8", "add_s8", "conv_2d_s8"}
