/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a part of an input row with what lies outside, for the convolutions of computers. */
#ifndef ARENITE_WINDOW_COPY_H
#define ARENITE_WINDOW_COPY_H

#include <stddef.h>

#include "arenite_conv_2d_s8.h"

#define ARENITE_COPY_CHUNK 16

/* Up to ARENITE_COPY_CHUNK - 1 bytes behind the last one are written too. */
static inline int8_t *arenite_fill_bytes(int8_t *to, int32_t value, int32_t count) {
    const uint64_t eight = 0x0101010101010101u * (uint8_t)value;
    const uint64_t chunk[2] = {eight, eight};
    for (int32_t i = 0; i < count; i += ARENITE_COPY_CHUNK) {
        __builtin_memcpy(to + i, chunk, ARENITE_COPY_CHUNK);
    }
    return to + count;
}

/* Copy as many bytes; chunks may overlap. */
static inline int8_t *arenite_copy_bytes(int8_t *to, const int8_t *from, int32_t count) {
    if (count < ARENITE_COPY_CHUNK) {
        for (int32_t i = 0; i < count; i++) {
            to[i] = from[i];
        }
        return to + count;
    }
    int32_t i = 0;
    for (; i < count - 4 * ARENITE_COPY_CHUNK; i += 4 * ARENITE_COPY_CHUNK) {
        __builtin_memcpy(to + i, from + i, 4 * ARENITE_COPY_CHUNK);
    }
    for (; i < count - ARENITE_COPY_CHUNK; i += ARENITE_COPY_CHUNK) {
        __builtin_memcpy(to + i, from + i, ARENITE_COPY_CHUNK);
    }
    __builtin_memcpy(to + count - ARENITE_COPY_CHUNK, from + count - ARENITE_COPY_CHUNK, ARENITE_COPY_CHUNK);
    return to + count;
}

/* Copy `count` pixels of a row, from `first` on, with what lies outside. Up to ARENITE_COPY_CHUNK - 1 bytes behind them
 * are written too. */
static inline void arenite_copy_pixels(const arenite_conv_2d_s8_t *p, const int8_t *row, int32_t first,
                                       int32_t count, int8_t *to) {
    const int32_t from = first < 0 ? 0 : first;
    const int32_t end = first + count < p->in_w ? first + count : p->in_w;
    if (row == NULL || end <= from) {
        arenite_fill_bytes(to, p->in_zero_point, count * p->in_c);
        return;
    }
    to = arenite_fill_bytes(to, p->in_zero_point, (from - first) * p->in_c);
    to = arenite_copy_bytes(to, row + (ptrdiff_t)from * p->in_c, (end - from) * p->in_c);
    arenite_fill_bytes(to, p->in_zero_point, (first + count - end) * p->in_c);
}

#endif
