# SPDX-License-Identifier: Apache-2.0
"""Which element each output element is, for every operator that only moves elements; `moving.py` does the rest."""

from __future__ import annotations

import math

import numpy as np

from arenite_codegen.network import Layer, Read
from arenite_codegen.operators.base import MOVED_DTYPES, Array, Context, refuse, same_quantisation
from arenite_codegen.operators.moving import FILL, Indices, indices_of, move

__all__ = [
    "lower_batch_to_space",
    "lower_broadcast_to",
    "lower_depth_to_space",
    "lower_gather",
    "lower_gather_nd",
    "lower_mirror_pad",
    "lower_resize_bilinear",
    "lower_resize_nearest",
    "lower_reverse",
    "lower_space_to_batch",
    "lower_space_to_depth",
    "lower_tile",
    "lower_unpack",
]


def _axis(context: Context, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise refuse(context, f"axis {axis} is out of range for {context.input(0)}")
    return axis % rank


def _numbers(context: Context, position: int) -> list[int]:
    return [int(value) for value in context.whole_numbers(position).ravel()]


def _image(context: Context) -> Indices:
    indices = indices_of(context, context.input(0))
    if indices.ndim != 4:
        raise refuse(context, f"{context.input(0)} must have 4 dimensions")
    return indices


def lower_gather(context: Context) -> Layer:
    """Slices along an axis, by constant positions."""
    indices, attributes = indices_of(context, context.input(0)), context.operator.attributes
    axis, positions = _axis(context, int(attributes["axis"]), indices.ndim), context.whole_numbers(1)
    if attributes["batch_dims"]:
        raise refuse(context, "batch dimensions have no kernel")
    _check_positions(context, positions, indices.shape[axis])
    _check_elements(context, indices.size // indices.shape[axis] * positions.size)
    return move(context, np.take(indices, positions, axis=axis))


def lower_gather_nd(context: Context) -> Layer:
    """Slices by constant positions of several axes."""
    indices, positions = indices_of(context, context.input(0)), context.whole_numbers(1)
    if positions.ndim == 0 or not 1 <= positions.shape[-1] <= indices.ndim:
        raise refuse(context, f"its positions {list(positions.shape)} do not suit {context.input(0)}")
    for axis in range(positions.shape[-1]):
        _check_positions(context, positions[..., axis], indices.shape[axis])
    slices = math.prod(positions.shape[:-1])
    _check_elements(context, slices * math.prod(indices.shape[positions.shape[-1] :]))
    return move(context, indices[tuple(np.moveaxis(positions, -1, 0))])


def _check_positions(context: Context, positions: Array, extent: int) -> None:
    if positions.size and not (positions.min() >= 0 and positions.max() < extent):
        raise refuse(context, f"a position outside 0 .. {extent - 1}")


def lower_tile(context: Context) -> Layer:
    """The input several times along each axis."""
    indices, counts = indices_of(context, context.input(0)), _numbers(context, 1)
    if len(counts) != indices.ndim or min(counts, default=1) < 1:
        raise refuse(context, f"its multiples {counts} do not suit {context.input(0)}")
    _check_size(context, [extent * count for extent, count in zip(indices.shape, counts, strict=True)])
    return move(context, np.tile(indices, counts))


def lower_broadcast_to(context: Context) -> Layer:
    """Dimensions of 1 repeated, and new ones in front."""
    shape = _numbers(context, 1)
    _check_size(context, shape)
    try:
        return move(context, np.broadcast_to(indices_of(context, context.input(0)), shape))
    except ValueError:
        raise refuse(context, f"{context.input(0)} cannot be broadcast to {shape}") from None


def _check_size(context: Context, shape: list[int]) -> None:
    if tuple(shape) != context.output.shape:
        raise refuse(context, f"it makes {shape}, but its output is {context.output}")


def _check_padded(context: Context, shape: tuple[int, ...], amounts: list[list[int]]) -> None:
    _check_elements(context, math.prod(extent + sum(pair) for extent, pair in zip(shape, amounts, strict=True)))


def _check_elements(context: Context, made: int) -> None:
    """Before the map is made: one that the output does not hold may be beyond all memory."""
    if made != context.output.elements:
        raise refuse(context, f"it makes {made:,} elements, but its output is {context.output}")


def lower_reverse(context: Context) -> Layer:
    """Some axes backwards."""
    indices = indices_of(context, context.input(0))
    axes = [_axis(context, axis, indices.ndim) for axis in _numbers(context, 1)]
    if len(set(axes)) != len(axes):
        raise refuse(context, f"it turns an axis over twice: {axes}")
    return move(context, np.flip(indices, axes))


def lower_mirror_pad(context: Context) -> Layer:
    """Paddings that repeat the input backwards, without its edge (reflect) or with it (symmetric)."""
    indices, amounts = indices_of(context, context.input(0)), context.whole_numbers(1)
    mode = int(context.operator.attributes["mode"])
    if amounts.shape != (indices.ndim, 2) or mode not in (0, 1):
        raise refuse(context, f"its paddings {amounts.tolist()} or mode {mode} do not suit {context.input(0)}")
    most = [extent - 1 + mode for extent in indices.shape]
    if any(not 0 <= amount <= limit for pair, limit in zip(amounts, most, strict=True) for amount in pair):
        raise refuse(context, f"its paddings {amounts.tolist()} are more than there is to mirror")
    _check_padded(context, indices.shape, amounts.tolist())
    return move(context, np.pad(indices, amounts, mode="symmetric" if mode else "reflect"))


def lower_depth_to_space(context: Context) -> Layer:
    """Blocks of channels become pixels."""
    indices, block = _image(context), int(context.operator.attributes["block_size"])
    n, h, w, c = indices.shape
    if block < 1 or c % (block * block):
        raise refuse(context, f"{c} channels are no blocks of {block} × {block}")
    cells = indices.reshape(n, h, w, block, block, c // (block * block))
    return move(context, cells.transpose(0, 1, 3, 2, 4, 5))


def lower_space_to_depth(context: Context) -> Layer:
    """Blocks of pixels become channels: a pixel is the rows of its block side by side."""
    source, block = context.input(0), int(context.operator.attributes["block_size"])
    same_quantisation(context, source, context.output, MOVED_DTYPES)
    _, h, w, c = _image(context).shape
    if block < 1 or h % block or w % block:
        raise refuse(context, f"{h} × {w} pixels are no blocks of {block} × {block}")
    _check_size(context, [source.shape[0], h // block, w // block, c * block * block])
    pixel_bytes = c * source.element_bytes
    return context.build.layer(
        context,
        kernel="concatenation_s8",
        reads=(Read(context.build.value(source), h, w * pixel_bytes, window=block, stride=block),),
        parameters={"chunks": np.full(block, block * pixel_bytes, np.int32), "count": block, "repeats": w // block},
    )


def lower_space_to_batch(context: Context) -> Layer:
    """Every n-th row and pixel becomes a picture of its own, after padding with the zero point."""
    indices, blocks, amounts = _image(context), _numbers(context, 1), context.whole_numbers(2)
    if len(blocks) != 2 or amounts.shape != (2, 2) or min(blocks) < 1 or amounts.min() < 0:
        raise refuse(context, f"blocks {blocks} and paddings {amounts.tolist()} do not suit {context.input(0)}")
    _check_padded(context, indices.shape, [[0, 0], *amounts.tolist(), [0, 0]])
    padded = np.pad(indices, [(0, 0), *amounts.tolist(), (0, 0)], constant_values=FILL)
    n, h, w, c = padded.shape
    if h % blocks[0] or w % blocks[1]:
        raise refuse(context, f"{h} × {w} pixels are no blocks of {blocks}")
    cells = padded.reshape(n, h // blocks[0], blocks[0], w // blocks[1], blocks[1], c)
    return move(context, cells.transpose(2, 4, 0, 1, 3, 5))


def lower_batch_to_space(context: Context) -> Layer:
    """The pictures of a batch, interleaved and cropped."""
    indices, blocks, crops = _image(context), _numbers(context, 1), context.whole_numbers(2)
    n, h, w, c = indices.shape
    if len(blocks) != 2 or crops.shape != (2, 2) or min(blocks) < 1 or crops.min() < 0 or n % (blocks[0] * blocks[1]):
        raise refuse(context, f"blocks {blocks} and crops {crops.tolist()} do not suit {context.input(0)}")
    count = n // (blocks[0] * blocks[1])
    cells = indices.reshape(*blocks, count, h, w, c).transpose(2, 3, 0, 4, 1, 5)
    whole = cells.reshape(count, h * blocks[0], w * blocks[1], c)
    (top, bottom), (left, right) = crops.tolist()
    return move(context, whole[:, top : whole.shape[1] - bottom, left : whole.shape[2] - right])


def lower_resize_nearest(context: Context) -> Layer:
    """Rows and pixels repeated or left out."""
    indices, sizes, attributes = _image(context), _numbers(context, 1), context.operator.attributes
    if len(sizes) != 2 or min(sizes) < 1:
        raise refuse(context, f"its size {sizes} is none")
    corners, centres = bool(attributes["align_corners"]), bool(attributes["half_pixel_centers"])
    _check_size(context, [indices.shape[0], *sizes, indices.shape[3]])
    rows, columns = (_nearest(indices.shape[1 + i], sizes[i], corners, centres) for i in (0, 1))
    return move(context, indices[:, rows][:, :, columns])


def _nearest(extent: int, out: int, corners: bool, centres: bool) -> Array:
    """The input position of each output position. Source: GetNearestNeighbor: float32."""
    aligned = corners and out > 1
    scale = np.float32(extent - 1) / np.float32(out - 1) if aligned else np.float32(extent) / np.float32(out)
    scaled = (np.arange(out, dtype=np.float32) + np.float32(0.5 if centres else 0)) * scale
    whole = np.floor(scaled + np.float32(0.5)) if corners else np.floor(scaled)
    found: Array = np.clip(whole.astype(np.int64), 0, extent - 1)
    return found


def lower_resize_bilinear(context: Context) -> Layer:
    """Each row between two of the input, each pixel between two of theirs. Source: ResizeBilinearInteger."""
    source, output, sizes = context.input(0), context.output, _numbers(context, 1)
    same_quantisation(context, source, output)
    if len(source.shape) != 4 or len(sizes) != 2 or min(sizes) < 1:
        raise refuse(context, f"{source} cannot get the size {sizes}")
    _check_size(context, [source.shape[0], *sizes, source.shape[3]])
    attributes = context.operator.attributes
    corners, centres = bool(attributes["align_corners"]), bool(attributes["half_pixel_centers"])
    (upper, _, weights), columns = (_between(context, source.shape[1 + i], sizes[i], corners, centres) for i in (0, 1))
    rows, channels = context.rows(source), source.shape[3]
    left, right, shares = columns
    return context.build.layer(
        context,
        kernel="resize_bilinear_s8",
        reads=(Read(context.build.value(source), rows.height, rows.row_bytes, window=2, starts=tuple(upper)),),
        parameters={
            "columns": np.array([left, right, shares], np.int32).T * np.array([channels, channels, 1], np.int32),
            "weights": np.array(weights, np.int32),
            "out_w": sizes[1],
            "channels": channels,
        },
    )


def _between(
    context: Context, extent: int, out: int, corners: bool, centres: bool
) -> tuple[list[int], list[int], list[int]]:
    """For each output position the input positions on both sides, and the second's weight in 1/1024."""
    aligned = corners and out > 1
    whole, parts = (extent - 1, out - 1) if aligned else (extent, out)
    scale = ((whole << 10) + parts // 2) // parts
    lower, upper, weights = [], [], []
    for position in range(out):
        scaled = position * scale + (scale // 2 - (1 << 9) if centres else 0)
        low = max(0, scaled >> 10)
        if low >= extent:
            raise refuse(context, f"from {extent} to {out} positions the reference reads beyond the last")
        high = min(max(0, (scaled + 1023) >> 10), extent - 1)
        lower.append(low)
        upper.append(high)
        weights.append(scaled - (low << 10) if high > low else 0)
    return lower, upper, weights


def lower_unpack(context: Context) -> tuple[Layer, ...]:
    """One output for each position along an axis."""
    indices = indices_of(context, context.input(0))
    axis = _axis(context, int(context.operator.attributes["axis"]), indices.ndim)
    outputs = [context.graph.tensors[index] for index in context.operator.outputs]
    if not len(outputs) == indices.shape[axis] == context.operator.attributes["num"]:
        raise refuse(context, f"it has {len(outputs)} outputs for {indices.shape[axis]} positions")
    return tuple(move(context, np.take(indices, [i], axis), output=output) for i, output in enumerate(outputs))
