/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_tile.h"

#if defined(__aarch64__)
#include <stddef.h>

#include "arenite_neon.h"

#define PIXELS 4   /* at a time: 16 accumulators */
#define QUARTERS 4 /* of a block: vectors of [4 channels][4 bytes] */
#define BLOCK_WORD (ARENITE_BLOCK * ARENITE_WORD)

static inline int8x16_t input_word(const int8_t *x) {
    int32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return vreinterpretq_s8_s32(vdupq_n_s32(word));
}

/* One block of channels of `pixels` pixels, the first of which is `pixel`. */
static inline __attribute__((always_inline)) void run(const arenite_conv_tile_t *t, int32_t pixel,
                                                      int32_t channel, const int pixels) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int8_t *w = p->weights + (ptrdiff_t)channel * t->segments * t->words * ARENITE_WORD;
    const int8_t *const *pointers = t->pointers + pixel;
    int32x4_t acc[PIXELS][QUARTERS];
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int q = 0; q < QUARTERS; q++) {
            acc[i][q] = vld1q_s32(p->bias + channel + 4 * q);
        }
    }
    for (int32_t s = t->segments; s > 0; s--, pointers += t->pixels) {
        for (ptrdiff_t k = 0; k < ARENITE_WORD * t->words; k += ARENITE_WORD, w += BLOCK_WORD) {
            ARENITE_UNROLL
            for (int i = 0; i < pixels; i++) {
                const int8x16_t x = input_word(pointers[i] + k);
                ARENITE_UNROLL
                for (int q = 0; q < QUARTERS; q++) {
                    acc[i][q] = arenite_dot_neon(acc[i][q], x, vld1q_s8(w + 16 * q));
                }
            }
        }
    }
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        arenite_finish_neon(acc[i], p->multiplier + channel, p->shift + channel, p->out_zero_point,
                            t->out + (ptrdiff_t)(pixel + i) * p->out_c + channel, p->out_c - channel,
                            p->act_min, p->act_max);
    }
}

void arenite_conv_2d_tile_neon(const arenite_conv_tile_t *t) {
    for (int32_t channel = 0; channel < t->params->out_c; channel += ARENITE_BLOCK) {
        int32_t pixel = 0;
        for (; pixel <= t->pixels - PIXELS; pixel += PIXELS) {
            run(t, pixel, channel, PIXELS);
        }
        for (; pixel < t->pixels; pixel++) {
            run(t, pixel, channel, 1);
        }
    }
}
#endif
