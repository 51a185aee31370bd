/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_softmax_s16.h"

#include "arenite_reciprocal.h"

#define SEGMENT_BITS 7

/* The line of a table at a position of int16. */
static int32_t line(const int16_t *table, int32_t position) {
    const int32_t place = arenite_clamp(position, INT16_MIN, INT16_MAX) - INT16_MIN;
    const int32_t entry = place >> SEGMENT_BITS, rest = place & ((1 << SEGMENT_BITS) - 1);
    const int32_t slope = (int16_t)(table[entry + 1] - table[entry]);
    return (int16_t)(table[entry] + ((slope * rest + (1 << (SEGMENT_BITS - 1))) >> SEGMENT_BITS));
}

static void softmax_pixel(const arenite_softmax_s16_t *p, const int16_t *in, int16_t *out) {
    int32_t greatest = INT16_MIN, sum = 0;
    for (int32_t c = 0; c < p->channels; c++) {
        greatest = in[c] > greatest ? in[c] : greatest;
    }
    for (int32_t c = 0; c < p->channels; c++) {
        const int32_t scaled = arenite_requantise(in[c] - greatest, p->multiplier, p->shift);
        out[c] = (int16_t)line(p->exp_table, scaled + INT16_MAX);
        sum += out[c];
    }
    const int32_t zeros = arenite_leading_zeros((uint32_t)sum);
    /* The sum as 1 .. 2 in Q16, its part behind the point from the least to the greatest int16. */
    const int32_t part = (int32_t)((((int64_t)sum << (zeros - 1)) + (1 << 13)) >> 14) - (1 << 16) - (1 << 15);
    const int64_t reciprocal = line(p->reciprocal_table, part);
    const int32_t right_shift = 31 - zeros;
    for (int32_t c = 0; c < p->channels; c++) {
        const int64_t product = out[c] * reciprocal + ((int64_t)1 << (right_shift - 1));
        out[c] = (int16_t)arenite_clamp((int32_t)(product >> right_shift), 0, INT16_MAX);
    }
}

void arenite_softmax_s16(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch) {
    const arenite_softmax_s16_t *p = (const arenite_softmax_s16_t *)params;
    (void)step;
    (void)scratch;
    const int16_t *in = (const int16_t *)(const void *)rows[0];
    int16_t *to = (int16_t *)(void *)out;
    for (int32_t x = 0; x < p->width; x++) {
        softmax_pixel(p, in + x * p->channels, to + x * p->channels);
    }
}
