/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_tile.h"

#include "arenite_host_isa.h"

#if defined(__x86_64__) && ARENITE_KNOWS_AVXVNNI
#include "arenite_conv_2d_tile_avx2.h"

#define ARENITE_AVXVNNI __attribute__((target("avx2,avxvnni")))
#define ARENITE_AVXVNNI_INLINE static inline __attribute__((always_inline)) ARENITE_AVXVNNI

#define BLOCK_WORD (ARENITE_BLOCK * ARENITE_WORD)

/* 4 input bytes in every lane, moved by 128: VPDPBUSD multiplies unsigned bytes with signed ones. */
ARENITE_AVXVNNI_INLINE __m256i input_word(const int8_t *x, __m256i moves) {
    int32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return _mm256_xor_si256(_mm256_set1_epi32(word), moves);
}

/* acc + products of 4 bytes each, x unsigned. With many accumulators GCC copies them about unless it sees one operand that
 * changes. */
ARENITE_AVXVNNI_INLINE __m256i dot(__m256i acc, __m256i x, __m256i w) {
#if defined(__clang__)
    return _mm256_dpbusd_avx_epi32(acc, x, w);
#else
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(x), "x"(w));
    return acc;
#endif
}

/* `halves` times 8 channels of every pixel: with 6 pixels 12 accumulators, 2 weights, 1 input word, 1 constant. */
ARENITE_AVXVNNI_INLINE void run(const arenite_conv_tile_t *t, int32_t channel, const int pixels,
                                const int halves) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int32_t *bias = p->bias + arenite_blocks(p->out_c) * ARENITE_BLOCK + channel;
    const ptrdiff_t pitch = (ptrdiff_t)t->segments * t->words * BLOCK_WORD;
    const int8_t *w = p->weights + channel / ARENITE_BLOCK * pitch;
    const int8_t *const *pointers = t->pointers;
    __m256i acc[ARENITE_TILE_PIXELS][ARENITE_HALVES];
    __m256i moves = _mm256_set1_epi8(-128);
    __asm__("" : "+x"(moves)); /* keeps Clang from moving single words, before they are broadcast */
    ARENITE_UNROLL
    for (int h = 0; h < halves; h++) {
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            acc[i][h] = arenite_load_avx2(bias + ARENITE_HALF * h);
        }
    }
    const int8_t *const *const end = pointers + (ptrdiff_t)t->segments * pixels;
    const ptrdiff_t bytes = (ptrdiff_t)ARENITE_WORD * t->words;
    do { /* neither loop is ever empty; GCC spills accumulators if it cannot see that */
        const int8_t *x[ARENITE_TILE_PIXELS];
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            x[i] = pointers[i];
        }
        ptrdiff_t k = 0;
        do {
            __m256i weights[ARENITE_HALVES];
            ARENITE_UNROLL
            for (int h = 0; h < halves; h++) {
                weights[h] = arenite_load_avx2(w + ARENITE_HALF * ARENITE_WORD * h);
            }
            ARENITE_UNROLL
            for (int i = 0; i < pixels; i++) {
                const __m256i word = input_word(x[i] + k, moves);
                ARENITE_UNROLL
                for (int h = 0; h < halves; h++) {
                    acc[i][h] = dot(acc[i][h], word, weights[h]);
                }
            }
            k += ARENITE_WORD;
            w += BLOCK_WORD;
        } while (k < bytes);
        pointers += pixels;
    } while (pointers < end);
    __m256i sums[ARENITE_HALVES][ARENITE_TILE_PIXELS];
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int h = 0; h < halves; h++) {
            sums[h][i] = acc[i][h];
        }
    }
    arenite_finish_tile_avx2(t, channel, sums, pixels, halves);
}

/* All channels, with a constant for the number of pixels, so that accumulators are registers. */
#define RUN(pixels)                                                                                          \
    static ARENITE_AVXVNNI void run_##pixels(const arenite_conv_tile_t *t) {                                 \
        int32_t channel = 0;                                                                                 \
        for (; channel < t->params->out_c - ARENITE_HALF; channel += ARENITE_BLOCK) {                        \
            run(t, channel, pixels, ARENITE_HALVES);                                                         \
        }                                                                                                    \
        if (channel < t->params->out_c) {                                                                    \
            run(t, channel, pixels, 1);                                                                      \
        }                                                                                                    \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)
RUN(5)
RUN(6)

typedef void (*run_t)(const arenite_conv_tile_t *t);
static const run_t runs[ARENITE_TILE_PIXELS] = {run_1, run_2, run_3, run_4, run_5, run_6};

void arenite_conv_2d_tile_avxvnni(const arenite_conv_tile_t *t) { runs[t->pixels - 1](t); }
#endif
