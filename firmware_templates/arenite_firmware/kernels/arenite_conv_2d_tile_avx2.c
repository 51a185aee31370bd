/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_tile.h"

#if defined(__x86_64__)
#include "arenite_conv_2d_tile_avx2.h"

#define BLOCK_WORD (ARENITE_BLOCK * ARENITE_WORD)
#define QUARTERS 2 /* of a half: vectors of [4 channels][4 bytes] as int16 */
#define ACCUMULATED                                                                                          \
    3 /* pixels, at most, of two halves at a time: 12 accumulators, as 6 pixels of one half have */
#define WIDE_BYTES 2048 /* of a pixel's window, at most, that are widened ahead */

/* A window that is read word by word: of bytes, which are widened as they are read, or of int16 already. */
typedef struct {
    const int8_t *const *pointers; /* [segments][pixels] */
    int32_t segments;
    int32_t words;
} window_t;

/* 4 input bytes as int16, in every group of 4 lanes. */
ARENITE_AVX2_INLINE __m256i input_word(const int8_t *x, const int is_wide) {
    if (is_wide) {
        int64_t word;
        __builtin_memcpy(&word, x, sizeof word);
        return _mm256_set1_epi64x(word);
    }
    int32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return _mm256_cvtepi8_epi16(_mm_set1_epi32(word));
}

/* acc + sums of 2 products. With many accumulators GCC copies them about unless it sees one operand that changes. */
ARENITE_AVX2_INLINE __m256i add_products(__m256i acc, __m256i x, __m256i w) {
#if defined(__clang__)
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x, w));
#else
    __m256i products;
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(acc), "=&x"(products) : "x"(x), "x"(w));
    return acc;
#endif
}

/* `halves` times 8 channels of every pixel. */
ARENITE_AVX2_INLINE void run(const arenite_conv_tile_t *t, const window_t *window, int32_t channel,
                             const int pixels, const int halves, const int is_wide) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int quarters = QUARTERS * halves, word_bytes = is_wide ? 2 * ARENITE_WORD : ARENITE_WORD;
    const ptrdiff_t pitch = (ptrdiff_t)window->segments * window->words * BLOCK_WORD;
    const int8_t *w = p->weights + channel / ARENITE_BLOCK * pitch + (channel & ARENITE_HALF) * ARENITE_WORD;
    const int8_t *const *pointers = window->pointers;
    __m256i acc[ARENITE_TILE_PIXELS][QUARTERS * ARENITE_HALVES];
    ARENITE_UNROLL
    for (int q = 0; q < quarters; q++) {
        const __m128i bias = _mm_loadu_si128((const __m128i *)(const void *)(p->bias + channel + 4 * q));
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            acc[i][q] = _mm256_cvtepu32_epi64(bias);
        }
    }
    const int8_t *const *const end = pointers + (ptrdiff_t)window->segments * pixels;
    const ptrdiff_t bytes = (ptrdiff_t)word_bytes * window->words;
    do { /* neither loop is ever empty; GCC spills accumulators if it cannot see that */
        const int8_t *x[ARENITE_TILE_PIXELS];
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            x[i] = pointers[i];
        }
        ptrdiff_t k = 0;
        do {
            __m256i weights[QUARTERS * ARENITE_HALVES];
            ARENITE_UNROLL
            for (int q = 0; q < quarters; q++) {
                weights[q] = arenite_widen_avx2(w + 4 * ARENITE_WORD * q);
            }
            ARENITE_UNROLL
            for (int i = 0; i < pixels; i++) {
                const __m256i word = input_word(x[i] + k, is_wide);
                ARENITE_UNROLL
                for (int q = 0; q < quarters; q++) {
                    acc[i][q] = add_products(acc[i][q], word, weights[q]);
                }
            }
            k += word_bytes;
            w += BLOCK_WORD;
        } while (k < bytes);
        pointers += pixels;
    } while (pointers < end);
    __m256i sums[ARENITE_HALVES][ARENITE_TILE_PIXELS];
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int h = 0; h < halves; h++) {
            sums[h][i] = arenite_add_pairs_avx2(acc[i][QUARTERS * h], acc[i][QUARTERS * h + 1]);
        }
    }
    arenite_finish_tile_avx2(t, channel, sums, pixels, halves);
}

/* All channels, with a constant for the number of pixels, so that accumulators are registers. */
ARENITE_AVX2_INLINE void run_all(const arenite_conv_tile_t *t, const window_t *window, const int pixels,
                                 const int is_wide) {
    const int halves = pixels <= ACCUMULATED ? ARENITE_HALVES : 1;
    for (int32_t channel = 0; channel < t->params->out_c; channel += ARENITE_HALF * halves) {
        run(t, window, channel, pixels, halves, is_wide);
    }
}

#define RUN(pixels)                                                                                          \
    static ARENITE_AVX2 void run_##pixels(const arenite_conv_tile_t *t, const window_t *window) {            \
        run_all(t, window, pixels, 0);                                                                       \
    }                                                                                                        \
    static ARENITE_AVX2 void run_##pixels##_wide(const arenite_conv_tile_t *t, const window_t *window) {     \
        run_all(t, window, pixels, 1);                                                                       \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)
RUN(5)
RUN(6)

typedef void (*run_t)(const arenite_conv_tile_t *t, const window_t *window);
static const run_t runs[ARENITE_TILE_PIXELS] = {run_1, run_2, run_3, run_4, run_5, run_6};
static const run_t runs_wide[ARENITE_TILE_PIXELS] = {run_1_wide, run_2_wide, run_3_wide,
                                                     run_4_wide, run_5_wide, run_6_wide};

/* `bytes`, a multiple of 4, as int16. */
ARENITE_AVX2_INLINE void widen(const int8_t *from, ptrdiff_t bytes, int16_t *to) {
    ptrdiff_t i = 0;
    for (; i <= bytes - 16; i += 16) {
        _mm256_storeu_si256((__m256i *)(void *)(to + i), arenite_widen_avx2(from + i));
    }
    if (bytes >= 16) {
        if (i < bytes) {
            i = bytes - 16; /* some bytes twice */
            _mm256_storeu_si256((__m256i *)(void *)(to + i), arenite_widen_avx2(from + i));
        }
        return;
    }
    for (; i < bytes; i += ARENITE_WORD) {
        int32_t word;
        __builtin_memcpy(&word, from + i, sizeof word);
        _mm_storel_epi64((__m128i *)(void *)(to + i), _mm_cvtepi8_epi16(_mm_cvtsi32_si128(word)));
    }
}

ARENITE_AVX2 void arenite_conv_2d_tile_avx2(const arenite_conv_tile_t *t) {
    const ptrdiff_t run_bytes = (ptrdiff_t)ARENITE_WORD * t->words, bytes = t->segments * run_bytes;
    window_t window = {t->pointers, t->segments, t->words};
    if (bytes > WIDE_BYTES) {
        runs[t->pixels - 1](t, &window);
        return;
    }
    int16_t wide[ARENITE_TILE_PIXELS * WIDE_BYTES];
    const int8_t *pointers[ARENITE_TILE_PIXELS];
    int16_t *to = wide;
    for (int32_t i = 0; i < t->pixels; i++) {
        pointers[i] = (const int8_t *)to;
        for (int32_t s = 0; s < t->segments; s++, to += run_bytes) {
            widen(t->pointers[s * t->pixels + i], run_bytes, to);
        }
    }
    window = (window_t){pointers, 1, t->segments * t->words};
    runs_wide[t->pixels - 1](t, &window);
}
#endif
