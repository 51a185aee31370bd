# SPDX-License-Identifier: Apache-2.0
"""Spoils a kernel of a bundle on purpose, so that it writes where it must not."""

from __future__ import annotations

from pathlib import Path

__all__ = ["damage_kernel"]

# Where the block ends that each kernel is to spoil: its output row, or its scratch.
_ENDS = {
    "conv_2d_s8": "out + p->out_w * p->out_c",
    "add_s8": "out + p->width * p->channels",
    "pad_s8": "out + (p->left + p->in_w + p->right) * (p->before + p->in_c + p->after)",
    "reduce_sum_s8": "(int8_t *)&scratch[p->outputs]",
}
_WRAPPER = """
void arenite_{function}(const void *params, const int8_t *const *rows, int8_t *out, int32_t step, int32_t *scratch) {{
    const arenite_{kernel}_t *p = (const arenite_{kernel}_t *)params;
    sound(params, rows, out, step, scratch);
    if ({only_if}) {{
        int8_t *spoilt = {end} + ({past_the_end});
        *spoilt = (int8_t)(*spoilt ^ 0x55);
    }}
}}
"""


def damage_kernel(bundle: Path, kernel: str, past_the_end: int, only_if: str = "1") -> None:
    """Lets a kernel change one byte more after each of its steps.

    Args:
        bundle: The bundle whose copy of the kernel, in every variant that it has, is edited.
        kernel: Its name.
        past_the_end: Which byte: 0 is the first behind the kernel's output row (or scratch), -1 the row's own last.
        only_if: A C condition over the kernel's arguments.
    """
    spoilt = 0
    for source in (bundle / "kernels").glob(f"arenite_{kernel}*.c"):
        function = source.stem.removeprefix("arenite_")
        before, head, rest = source.read_text().partition(f"void arenite_{function}(const void *params,")
        if head:
            values = {"kernel": kernel, "function": function, "end": _ENDS[kernel]}
            wrapper = _WRAPPER.format(**values, past_the_end=past_the_end, only_if=only_if)
            source.write_text(f"{before}static void sound(const void *params,{rest}{wrapper}")
            spoilt += 1
    assert spoilt
