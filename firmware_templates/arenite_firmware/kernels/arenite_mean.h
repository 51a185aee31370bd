/* SPDX-License-Identifier: Apache-2.0 */
/* What the averages share. */
#ifndef ARENITE_MEAN_H
#define ARENITE_MEAN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

/* sum / count, rounded half away from zero; count > 0. */
static inline int32_t arenite_rounded_mean(int32_t sum, int32_t count) {
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* Add a row of pixels to the sums of their channels; the first row starts the sums. */
static inline void arenite_sum_row(const int8_t *row, int32_t width, int32_t channels, int32_t first,
                                   int32_t *sums) {
    int32_t c = 0;
#if defined(__ARM_FEATURE_MVE)
    for (; c <= channels - 4; c += 4) {
        const int8_t *in = row + c;
        int32x4_t sum = first ? vdupq_n_s32(0) : vld1q_s32(sums + c);
        for (int32_t x = 0; x < width; x++, in += channels) {
            sum = vaddq_s32(sum, vldrbq_s32(in));
        }
        vst1q_s32(sums + c, sum);
    }
#endif
    for (; c < channels; c++) {
        const int8_t *in = row + c;
        int32_t sum = first ? 0 : sums[c];
        for (int32_t x = 0; x < width; x++, in += channels) {
            sum += *in;
        }
        sums[c] = sum;
    }
}

#endif
