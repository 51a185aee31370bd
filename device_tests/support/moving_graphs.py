# SPDX-License-Identifier: Apache-2.0
"""Random graphs of operators that only move elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite.authority import ONLY_LITERT
from support.builder import ModelBuilder
from support.choices import Choices
from support.graph_case import LITERT, TFLM, GraphCase, case

__all__ = ["MOVEMENTS"]

Array = npt.NDArray[Any]
Drawn = tuple[Sequence[int], list[Array], dict[str, Any]]
"""Output shape, further inputs, options."""


def _shape(choices: Choices, rank: int) -> tuple[int, ...]:
    return (choices.batch(), *(choices.integer(1, 9) for _ in range(rank - 2)), choices.channels())


def _numbers(values: Sequence[int]) -> Array:
    return np.array(values, np.int32)


def _gather(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    axis = choices.integer(1, len(shape) - 1)
    positions = np.array([choices.integer(0, shape[axis] - 1) for _ in range(choices.integer(1, 7))], np.int32)
    given = axis if choices.chance(50) else axis - len(shape)
    out = (*shape[:axis], positions.size, *shape[axis + 1 :])
    return out, [positions], {"options": "GatherOptions", "axis": given, "batchDims": 0}


def _gather_nd(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    depth, count = choices.integer(2, len(shape)), choices.integer(1, 6)
    batch = shape[0]
    rows = [[choices.integer(0, extent - 1) for extent in shape[1:depth]] for _ in range(count)]
    positions = np.array([[[item, *row] for row in rows] for item in range(batch)], np.int32)
    return (batch, count, *shape[depth:]), [positions], {}


def _tile(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    counts = [1, *(choices.pick([1, 1, 2, 3]) for _ in shape[1:])]
    return [n * count for n, count in zip(shape, counts, strict=True)], [_numbers(counts)], {}


def _broadcast_to(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    out = [shape[0], *(choices.integer(1, 7) if extent == 1 else extent for extent in shape[1:])]
    return out, [_numbers(out)], {}


def _reverse(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    first = choices.integer(1, len(shape) - 1)
    return shape, [_numbers(range(first, choices.integer(first, len(shape) - 1) + 1))], {}


def _mirror_pad(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    mode = choices.integer(0, 1)
    most = [0, *(extent - 1 + mode for extent in shape[1:])]
    amounts = [[choices.integer(0, min(3, limit)) for _ in range(2)] for limit in most]
    out = [extent + sum(pair) for extent, pair in zip(shape, amounts, strict=True)]
    return out, [np.array(amounts, np.int32)], {"options": "MirrorPadOptions", "mode": mode}


def _pad_value(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    amounts = [[0, 0], *([choices.integer(0, 3) for _ in range(2)] for _ in shape[1:])]
    out = [extent + sum(pair) for extent, pair in zip(shape, amounts, strict=True)]
    return out, [np.array(amounts, np.int32), choices.bytes_of((1,))], {"options": "PadV2Options"}


# Beside int8; TFLM lacks int16 in those that are not here.
_TYPES = {
    "SLICE": ("int16", "float32"),
    "STRIDED_SLICE": ("int16", "float32"),
    "REVERSE_V2": ("int16", "float32"),
    "RESIZE_NEAREST_NEIGHBOR": ("int16", "float32"),
    **dict.fromkeys(("GATHER", "GATHER_ND", "BROADCAST_TO", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), ("float32",)),
}


def _slice(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    begins = [0, *(choices.integer(0, extent - 1) for extent in shape[1:])]
    sizes = [choices.integer(1, extent - first) for extent, first in zip(shape, begins, strict=True)]
    sizes[0] = shape[0]
    given = list(sizes)
    for axis, extent in enumerate(shape):
        if begins[axis] + sizes[axis] == extent and choices.chance(30):
            given[axis] = -1
    return sizes, [_numbers(begins), _numbers(given)], {}


def _strided_slice(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    """Forwards and backwards, bounds open, negative or beyond the end."""
    begins, ends, strides, out, begin_mask = [0], [shape[0]], [1], [shape[0]], 0
    for axis, extent in enumerate(shape[1:], start=1):
        stride = choices.pick([1, 1, 2, 3, -1, -2])
        first = choices.integer(0, extent - 1)
        if choices.chance(20):
            begin_mask |= 1 << axis
            first = 0 if stride > 0 else extent - 1
        count = choices.integer(1, 1 + ((extent - 1 - first) if stride > 0 else first) // abs(stride))
        end = first + count * stride
        begins.append(first - extent if choices.chance(20) else first)
        ends.append(end if end >= 0 else -extent - 1)
        strides.append(stride)
        out.append(count)
    options = {"options": "StridedSliceOptions", "beginMask": begin_mask}
    return out, [_numbers(begins), _numbers(ends), _numbers(strides)], options


def _depth_to_space(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    n, h, w, c = shape
    block = max(b for b in (1, 2, 3, 4) if c % (b * b) == 0)
    options = {"options": "DepthToSpaceOptions", "blockSize": block}
    return (n, h * block, w * block, c // (block * block)), [], options


def _space_to_depth(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    n, h, w, c = shape
    block = max(b for b in (1, 2, 3, 4) if h % b == 0 and w % b == 0)
    options = {"options": "SpaceToDepthOptions", "blockSize": block}
    return (n, h // block, w // block, c * block * block), [], options


def _space_to_batch(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    n, h, w, c = shape
    blocks = [choices.integer(1, 3), choices.integer(1, 3)]
    before = [choices.integer(0, 2), choices.integer(0, 2)]
    pads = [[b, -(extent + b) % block] for b, extent, block in zip(before, (h, w), blocks, strict=True)]
    out = [n * blocks[0] * blocks[1], *((e + sum(p)) // b for e, p, b in zip((h, w), pads, blocks, strict=True)), c]
    return out, [_numbers(blocks), np.array(pads, np.int32)], {}


def _resize_options(choices: Choices, table: str) -> dict[str, Any]:
    corners, centres = choices.pick([(False, False), (True, False), (False, True)])
    return {"options": table, "alignCorners": corners, "halfPixelCenters": centres}


def _resize(choices: Choices, shape: tuple[int, ...], table: str) -> Drawn:
    sizes = [choices.pick([2 * n, 2 * n, 3 * n, choices.integer(1, 20)]) for n in shape[1:3]]
    return (shape[0], *sizes, shape[3]), [_numbers(sizes)], _resize_options(choices, table)


def _resize_nearest(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    return _resize(choices, shape, "ResizeNearestNeighborOptions")


def _resize_bilinear(choices: Choices, shape: tuple[int, ...]) -> Drawn:
    return _resize(choices, shape, "ResizeBilinearOptions")


_RULES: dict[str, tuple[Callable[[Choices, tuple[int, ...]], Drawn], tuple[int, ...]]] = {
    "GATHER": (_gather, (2, 3, 4)),
    "GATHER_ND": (_gather_nd, (2, 3, 4)),
    "TILE": (_tile, (2, 3, 4)),
    "BROADCAST_TO": (_broadcast_to, (2, 3, 4)),
    "REVERSE_V2": (_reverse, (2, 3, 4)),
    "MIRROR_PAD": (_mirror_pad, (4,)),
    "PADV2": (_pad_value, (3, 4)),
    "DEPTH_TO_SPACE": (_depth_to_space, (4,)),
    "SPACE_TO_DEPTH": (_space_to_depth, (4,)),
    "SPACE_TO_BATCH_ND": (_space_to_batch, (4,)),
    "SLICE": (_slice, (2, 3, 4)),
    "STRIDED_SLICE": (_strided_slice, (2, 3, 4)),
    "RESIZE_NEAREST_NEIGHBOR": (_resize_nearest, (4,)),
    "RESIZE_BILINEAR": (_resize_bilinear, (4,)),
}
# TFLM's SPACE_TO_BATCH_ND fills its paddings with 9, the number of the type int8, whatever the zero point.


def _drawn_shape(choices: Choices, kind: str) -> tuple[int, ...]:
    shape = _shape(choices, choices.pick(_RULES[kind][1]))
    if kind == "BROADCAST_TO":
        return (shape[0], *(1 if choices.chance(40) else extent for extent in shape[1:]))
    if kind == "SPACE_TO_BATCH_ND":
        return (1, *shape[1:])
    if kind == "DEPTH_TO_SPACE":
        return (*shape[:3], choices.pick([4, 8, 9, 12, 16, 32]))
    return shape


def _moving(choices: Choices, kind: str) -> GraphCase:
    shape = _drawn_shape(choices, kind)
    out_shape, more, options = _RULES[kind][0](choices, shape)
    dtype = choices.pick(["int8", "int8", *_TYPES.get(kind, ())])
    scale, point = choices.real(1e-3, 0.5), choices.zero_point() if dtype == "int8" else 0
    builder = ModelBuilder()
    grid: dict[str, Any] = {} if dtype == "float32" else {"scales": [scale], "zero_points": [point]}
    x = builder.tensor("x", shape, dtype, **grid)
    constants = [
        builder.tensor(f"c{i}", a.shape, str(a.dtype), data=a, **(grid if a.dtype == np.int8 else {}))
        for i, a in enumerate(more)
    ]
    y = builder.tensor("y", list(out_shape), dtype, **grid)
    builder.operator(kind, [x, *constants], [y], version=2, **options)
    text = f"{kind} {dtype} {shape}->{list(out_shape)} {[a.tolist() for a in more]} {options}"
    authority = LITERT if kind in ONLY_LITERT else TFLM
    return case(choices, text, builder, [(x, shape, dtype, point)], y, authority=authority)


def _batch_to_space(choices: Choices) -> GraphCase:
    """SPACE_TO_BATCH_ND and back, with other crops than paddings."""
    shape = (1, *_shape(choices, 4)[1:])
    middle_shape, (blocks, pads), _ = _space_to_batch(choices, shape)
    extents = list(zip(middle_shape[1:3], blocks.tolist(), strict=True))
    crops = [[choices.integer(0, 1), choices.integer(0, 1)] if m * b > 2 else [0, 0] for m, b in extents]
    out = [1, *(m * b - sum(crop) for (m, b), crop in zip(extents, crops, strict=True)), shape[3]]
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    grid: dict[str, Any] = {"scales": [scale], "zero_points": [point]}
    builder = ModelBuilder()
    x, middle, y = (
        builder.tensor(name, list(extent), "int8", **grid)
        for name, extent in (("x", shape), ("middle", middle_shape), ("y", out))
    )
    block = builder.tensor("blocks", (2,), "int32", data=blocks)
    ends = [builder.tensor("p", (2, 2), "int32", data=pads)]
    ends.append(builder.tensor("c", (2, 2), "int32", data=np.array(crops, np.int32)))
    builder.operator("SPACE_TO_BATCH_ND", [x, block, ends[0]], [middle])
    builder.operator("BATCH_TO_SPACE_ND", [middle, block, ends[1]], [y])
    text = f"BATCH_TO_SPACE_ND {shape}->{list(middle_shape)}->{out} {blocks.tolist()} {pads.tolist()} {crops}"
    return case(choices, text, builder, [(x, shape, "int8", point)], y, authority=LITERT)


def _split(choices: Choices) -> GraphCase:
    """SPLIT into equal parts."""
    shape = _shape(choices, choices.pick([2, 3, 4]))
    axis, count = choices.integer(1, len(shape) - 1), choices.integer(1, 4)
    size = shape[axis]
    whole = (*shape[:axis], size * count, *shape[axis + 1 :])
    return _parts(choices, "SPLIT", whole, axis, [size] * count)


def _split_v(choices: Choices) -> GraphCase:
    """SPLIT_V into parts of any size."""
    shape = _shape(choices, choices.pick([2, 3, 4]))
    axis = choices.integer(1, len(shape) - 1)
    sizes = [choices.integer(1, 5) for _ in range(choices.integer(1, 4))]
    return _parts(choices, "SPLIT_V", (*shape[:axis], sum(sizes), *shape[axis + 1 :]), axis, sizes)


def _parts(choices: Choices, kind: str, shape: tuple[int, ...], axis: int, sizes: list[int]) -> GraphCase:
    scale, point = choices.real(1e-3, 0.5), choices.zero_point()
    grid: dict[str, Any] = {"scales": [scale], "zero_points": [point]}
    given = axis if choices.chance(50) else axis - len(shape)
    builder = ModelBuilder()
    x = builder.tensor("x", shape, "int8", **grid)
    axis_tensor = builder.tensor("axis", (1,), "int32", data=_numbers([given]))
    outputs = [
        builder.tensor(f"y{i}", (*shape[:axis], size, *shape[axis + 1 :]), "int8", **grid)
        for i, size in enumerate(sizes)
    ]
    if kind == "SPLIT":
        builder.operator(kind, [axis_tensor, x], outputs, options="SplitOptions", numSplits=len(sizes))
    else:
        parts = builder.tensor("sizes", (len(sizes),), "int32", data=_numbers(sizes))
        builder.operator(kind, [x, parts, axis_tensor], outputs, options="SplitVOptions", numSplits=len(sizes))
    text = f"{kind} {shape} along {given} into {sizes}"
    return case(choices, text, builder, [(x, shape, "int8", point)], outputs)


def _generator(kind: str) -> Callable[[Choices], GraphCase]:
    return lambda choices: _moving(choices, kind)


MOVEMENTS: dict[str, Callable[[Choices], GraphCase]] = {
    **{kind: _generator(kind) for kind in _RULES},
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
}
