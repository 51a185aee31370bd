/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_tile.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "arenite_avx2.h"

#define PIXELS 2   /* at a time: 8 accumulators */
#define QUARTERS 4 /* of a block: vectors of [4 channels][4 bytes] as int16 */
#define BLOCK_WORD (ARENITE_BLOCK * ARENITE_WORD)

/* 4 input bytes moved by 128, as int16, in every group of 4 lanes. */
ARENITE_AVX2_INLINE __m256i input_word(const int8_t *x) {
    uint32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128((int32_t)(word ^ 0x80808080u))));
}

ARENITE_AVX2_INLINE __m256i weights_of(const int8_t *w, int quarter) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(w + 16 * quarter)));
}

ARENITE_AVX2_INLINE void finish(const arenite_conv_2d_s8_t *p, const __m256i *sums, int32_t channel,
                                int8_t *out) {
    const int32_t *bias = p->bias + arenite_blocks(p->out_c) * ARENITE_BLOCK + channel;
    arenite_finish_avx2(sums, bias, p->multiplier + channel, p->shift + channel, p->out_zero_point,
                        out + channel, p->out_c - channel, p->act_min, p->act_max);
}

/* One block of channels of `pixels` pixels, the first of which is `pixel`. */
ARENITE_AVX2_INLINE void run(const arenite_conv_tile_t *t, int32_t pixel, int32_t channel, const int pixels) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int8_t *w = p->weights + (ptrdiff_t)channel * t->segments * t->words * ARENITE_WORD;
    const int8_t *const *pointers = t->pointers + pixel;
    __m256i acc[PIXELS][QUARTERS];
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int q = 0; q < QUARTERS; q++) {
            acc[i][q] = _mm256_setzero_si256();
        }
    }
    for (int32_t s = t->segments; s > 0; s--, pointers += t->pixels) {
        for (ptrdiff_t k = 0; k < ARENITE_WORD * t->words; k += ARENITE_WORD, w += BLOCK_WORD) {
            __m256i x[PIXELS];
            ARENITE_UNROLL
            for (int i = 0; i < pixels; i++) {
                x[i] = input_word(pointers[i] + k);
            }
            ARENITE_UNROLL
            for (int q = 0; q < QUARTERS; q++) {
                const __m256i weights = weights_of(w, q);
                ARENITE_UNROLL
                for (int i = 0; i < pixels; i++) {
                    acc[i][q] = _mm256_add_epi32(acc[i][q], _mm256_madd_epi16(x[i], weights));
                }
            }
        }
    }
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        finish(p, acc[i], channel, t->out + (ptrdiff_t)(pixel + i) * p->out_c);
    }
}

ARENITE_AVX2 void arenite_conv_2d_tile_avx2(const arenite_conv_tile_t *t) {
    for (int32_t channel = 0; channel < t->params->out_c; channel += ARENITE_BLOCK) {
        int32_t pixel = 0;
        for (; pixel <= t->pixels - PIXELS; pixel += PIXELS) {
            run(t, pixel, channel, PIXELS);
        }
        if (pixel < t->pixels) {
            run(t, pixel, channel, 1);
        }
    }
}
#endif
