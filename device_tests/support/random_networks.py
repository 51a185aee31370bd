# SPDX-License-Identifier: Apache-2.0
"""Random row networks: chains, residuals, branches, joins, strides, dilations, poolings, reshapes."""

from __future__ import annotations

import random

from arenite_codegen.network import IoTensor, Layer, Mode, Network, Read, Role, Value

__all__ = ["random_network"]


class _Grower:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.values: list[Value] = []
        self.layers: list[Layer] = []
        self.read: set[int] = set()

    def value(self, rows: int, row_bytes: int, role: Role = Role.INTERNAL, items: int = 1) -> int:
        self.values.append(Value(len(self.values), f"v{len(self.values)}", rows, row_bytes, role, items))
        return len(self.values) - 1

    def layer(self, reads: tuple[Read, ...], rows: int, row_bytes: int, **extra: object) -> int:
        output = self.value(rows, row_bytes)
        steps = int(str(extra.pop("steps", rows)))
        layer = Layer(
            index=len(self.layers),
            operator=len(self.layers),
            kind="TEST",
            kernel="test",
            reads=reads,
            output=output,
            steps=steps,
            parameters={},
            macs=rows * row_bytes,
            **extra,  # type: ignore[arg-type]
        )
        self.layers.append(layer)
        self.read.update(r.value for r in reads)
        return output

    def window(self, source: int) -> int:
        value, chance = self.values[source], self.chance
        kernel = chance.randint(1, min(5, value.rows))
        stride, dilation = chance.choice((1, 1, 2, 3)), chance.choice((1, 1, 1, 2))
        span = (kernel - 1) * dilation + 1
        pad_top, pad_bottom = chance.randint(0, span - 1), chance.randint(0, span - 1)
        rows = (value.rows + pad_top + pad_bottom - span) // stride + 1
        if rows < 1:
            return self.pointwise(source)
        read = Read(source, value.rows, value.row_bytes, kernel, stride, dilation, pad_top)
        scratch = chance.choice((0, 0, 0, 4, 60, 200))
        return self.layer((read,), rows, chance.randint(1, 64), scratch_bytes=scratch)

    def pointwise(self, source: int) -> int:
        value = self.values[source]
        read = Read(source, value.rows, value.row_bytes)
        return self.layer((read,), value.rows, value.row_bytes, in_place=(0,))

    def join(self, sources: list[int]) -> int:
        rows, width = self.values[sources[0]].rows, self.values[sources[0]].row_bytes
        reads = tuple(Read(s, rows, self.values[s].row_bytes) for s in sources)
        in_place = tuple(i for i, s in enumerate(sources) if self.values[s].row_bytes == width)
        if self.chance.random() < 0.3:
            return self.layer(reads, rows, sum(self.values[s].row_bytes for s in sources))
        return self.layer(reads, rows, width, in_place=in_place)

    def accumulate(self, source: int) -> int:
        value = self.values[source]
        read = Read(source, value.rows, value.row_bytes)
        size = self.chance.randint(1, value.row_bytes)
        return self.layer((read,), 1, size, steps=value.rows, mode=Mode.ACCUMULATE, scratch_bytes=4 * size)

    def whole(self, source: int) -> int:
        value = self.values[source]
        if self.chance.random() < 0.5:
            return self.layer((Read(source, 1, value.bytes),), 1, self.chance.randint(1, 64))
        planes = [d for d in range(1, value.rows + 1) if value.rows % d == 0]
        count = self.chance.choice(planes)
        height = value.rows // count
        read = Read(source, value.rows, value.row_bytes, window=count, dilation=height, whole=True)
        return self.layer((read,), height, count * value.row_bytes)


def random_network(seed: int) -> Network:
    """A network of 1 to 25 layers; the same for the same seed."""
    grower = _Grower(seed)
    chance = grower.chance
    batch = chance.choice((1, 1, 1, 3))
    count = chance.choice((1, 1, 2))
    inputs = [grower.value(chance.randint(1, 24), chance.randint(1, 64), Role.INPUT, batch) for _ in range(count)]
    for _ in range(chance.randint(1, 25)):
        recent = grower.values[-chance.randint(1, min(4, len(grower.values))) :]
        source = chance.choice(recent).index
        alike = [v.index for v in grower.values if v.rows == grower.values[source].rows]
        grow = (grower.window, grower.window, grower.pointwise, grower.accumulate, grower.whole, None, None)
        make = chance.choice(grow)
        if make is None:
            grower.join([source, chance.choice(alike)])
        else:
            make(source)
    unread = [v.index for v in grower.values if v.index not in grower.read and v.role is Role.INTERNAL]
    for index in unread:
        value = grower.values[index]
        grower.values[index] = Value(index, value.name, value.rows, value.row_bytes, Role.OUTPUT, batch)
    return Network(
        model_sha256="0" * 64,
        batch=batch,
        values=tuple(grower.values),
        layers=tuple(grower.layers),
        inputs=tuple(_io(grower.values[i], batch) for i in inputs),
        outputs=tuple(_io(grower.values[i], batch) for i in unread),
    )


def _io(value: Value, batch: int) -> IoTensor:
    return IoTensor(value.name, value.index, (batch, value.rows, value.row_bytes), "int8", 1.0, 0)
