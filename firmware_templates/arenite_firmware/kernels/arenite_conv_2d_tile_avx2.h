/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiles of AVX2 and of AVX-VNNI do alike: accumulators to output bytes. */
#ifndef ARENITE_CONV_2D_TILE_AVX2_H
#define ARENITE_CONV_2D_TILE_AVX2_H

#include "arenite_avx2.h"
#include "arenite_conv_2d_tile.h"

#define ARENITE_HALVES 2 /* of a block */

ARENITE_AVX2_INLINE void arenite_requantise_tile_avx2(const arenite_requantise_avx2_t *r, __m256i *acc,
                                                      const int pixels, const int clamps_negative) {
    if (r->has_left) {
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            acc[i] = _mm256_sllv_epi32(acc[i], r->left);
        }
    }
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        acc[i] = arenite_requantise_avx2(r, acc[i], clamps_negative);
    }
}

/* Sums of 8 channels from `channel` on, overwritten. */
ARENITE_AVX2_INLINE void arenite_finish_half_avx2(const arenite_conv_tile_t *t, int32_t channel, __m256i *acc,
                                                  const int pixels) {
    const arenite_conv_2d_s8_t *p = t->params;
    const __m128i low = _mm_set1_epi8((int8_t)p->act_min), high = _mm_set1_epi8((int8_t)p->act_max);
    const int32_t count = p->out_c - channel;
    const arenite_requantise_avx2_t r =
        arenite_load_requantise_avx2(p->multiplier, p->shift, p->out_c, channel, p->out_zero_point);
    if (p->act_min >= p->out_zero_point) {
        arenite_requantise_tile_avx2(&r, acc, pixels, 1);
    } else {
        arenite_requantise_tile_avx2(&r, acc, pixels, 0);
    }
    int8_t *out = t->out + channel;
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i += 2, out += 2 * (ptrdiff_t)p->out_c) {
        const int has_two = i + 1 < pixels;
        const __m128i bytes = arenite_bytes_avx2(acc[i], acc[has_two ? i + 1 : i], low, high);
        arenite_store_8_avx2(out, bytes, count);
        if (has_two) {
            arenite_store_8_avx2(out + p->out_c, _mm_unpackhi_epi64(bytes, bytes), count);
        }
    }
}

/* Sums of `halves` times 8 channels from `channel` on, a multiple of 8, of every pixel; overwritten. */
ARENITE_AVX2_INLINE void arenite_finish_tile_avx2(const arenite_conv_tile_t *t, int32_t channel,
                                                  __m256i (*sums)[ARENITE_TILE_PIXELS], const int pixels,
                                                  const int halves) {
    /* The second half waits in memory: GCC, else, keeps it there from the first product on. */
    __asm__ volatile("" : : "r"(sums) : "memory");
    arenite_finish_half_avx2(t, channel, sums[0], pixels);
    if (halves > 1 && channel + ARENITE_HALF < t->params->out_c) {
        arenite_finish_half_avx2(t, channel + ARENITE_HALF, sums[1], pixels);
    }
}

#endif
