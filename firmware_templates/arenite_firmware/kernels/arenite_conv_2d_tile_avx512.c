/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_tile.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "arenite_avx512.h"

#define BLOCKS 4 /* at most at a time: with 6 pixels 24 accumulators, 4 weights, 1 input word, 1 constant */
#define BLOCK_WORD (ARENITE_BLOCK * ARENITE_WORD)

/* 4 input bytes in every lane, moved by 128: VPDPBUSD multiplies unsigned bytes with signed ones. */
ARENITE_AVX512_INLINE __m512i input_word(const int8_t *x, __m512i moves) {
    int32_t word;
    __builtin_memcpy(&word, x, sizeof word);
    return _mm512_xor_si512(_mm512_set1_epi32(word), moves);
}

/* A block of every pixel, clamped. */
ARENITE_AVX512_INLINE void store_block(const arenite_conv_2d_s8_t *p, int8_t *out, __m512i (*v)[BLOCKS],
                                       const int b, const int pixels, int32_t count) {
    const __m128i low = _mm_set1_epi8((int8_t)p->act_min), high = _mm_set1_epi8((int8_t)p->act_max);
    const __mmask16 mask = (__mmask16)((1u << (count & (ARENITE_BLOCK - 1))) - 1u);
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++, out += p->out_c) {
        const __m128i bytes = _mm512_cvtsepi32_epi8(v[i][b]);
        const __m128i clamped = _mm_min_epi8(_mm_max_epi8(bytes, low), high);
        if (count >= ARENITE_BLOCK) {
            _mm_storeu_si128((__m128i *)(void *)out, clamped);
        } else {
            _mm_mask_storeu_epi8(out, mask, clamped);
        }
    }
}

ARENITE_AVX512_INLINE void store_any(const arenite_conv_2d_s8_t *p, int8_t *out, __m512i (*v)[BLOCKS],
                                     const int pixels, const int blocks, int32_t left) {
    ARENITE_UNROLL
    for (int b = 0; b < blocks - 1; b++) {
        store_block(p, out + b * ARENITE_BLOCK, v, b, pixels, ARENITE_BLOCK);
    }
    out += (blocks - 1) * ARENITE_BLOCK;
    const int32_t count = left - (blocks - 1) * ARENITE_BLOCK;
    if (count >= ARENITE_BLOCK) {
        store_block(p, out, v, blocks - 1, pixels, ARENITE_BLOCK);
    } else {
        store_block(p, out, v, blocks - 1, pixels, count);
    }
}

/* Four whole blocks of every pixel. */
ARENITE_AVX512_INLINE void store_four(const arenite_conv_2d_s8_t *p, int8_t *out, __m512i (*v)[BLOCKS],
                                      const int pixels) {
    const __m512i low = _mm512_set1_epi8((int8_t)p->act_min), high = _mm512_set1_epi8((int8_t)p->act_max);
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++, out += p->out_c) {
        _mm512_storeu_si512(out, arenite_in_order_avx512(arenite_pack_avx512(v[i], low, high)));
    }
}

/* Two whole blocks of every pixel, by pairs of pixels. */
ARENITE_AVX512_INLINE void store_two(const arenite_conv_2d_s8_t *p, int8_t *out, __m512i (*v)[BLOCKS],
                                     const int pixels) {
    const __m512i low = _mm512_set1_epi8((int8_t)p->act_min), high = _mm512_set1_epi8((int8_t)p->act_max);
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i += 2, out += 2 * (ptrdiff_t)p->out_c) {
        const int second = i + 1 < pixels ? i + 1 : i;
        const __m512i pair[4] = {v[i][0], v[i][1], v[second][0], v[second][1]};
        const __m512i bytes = arenite_in_order_avx512(arenite_pack_avx512(pair, low, high));
        _mm256_storeu_si256((__m256i *)(void *)out, _mm512_castsi512_si256(bytes));
        if (i + 1 < pixels) {
            _mm256_storeu_si256((__m256i *)(void *)(out + p->out_c), _mm512_extracti64x4_epi64(bytes, 1));
        }
    }
}

/* Values of a block's channels from sums with shifts of any kind. */
ARENITE_AVX512 static __attribute__((noinline)) void
requantise_any(const arenite_conv_2d_s8_t *p, int32_t channel, __m512i *sums, int32_t pixels) {
    const arenite_requantise_avx512_t r = arenite_load_requantise_avx512(
        p->multiplier + channel, arenite_block_constants(p->multiplier, p->out_c, channel),
        p->out_zero_point);
    const __m128i shift = _mm_loadu_si128((const __m128i *)(const void *)(p->shift + channel));
    for (int32_t i = 0; i < pixels; i++) {
        sums[i] = arenite_requantise_avx512(&r, arenite_shift_left_avx512(sums[i], shift), 0);
    }
}

ARENITE_AVX512_INLINE void requantise(const arenite_conv_2d_s8_t *p, int32_t channel, __m512i (*acc)[BLOCKS],
                                      const int b, const int pixels, const int clamps_negative) {
    if (!arenite_suits_halves_avx512(p->shift + channel)) {
        __m512i sums[ARENITE_LARGE_TILE_PIXELS]; /* a copy, as sums whose address is known are no registers */
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            sums[i] = acc[i][b];
        }
        requantise_any(p, channel, sums, pixels);
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            acc[i][b] = sums[i];
        }
        return;
    }
    const arenite_halves_avx512_t r = arenite_load_halves_avx512(
        p->multiplier + channel, arenite_block_halves(p->multiplier, p->out_c, channel));
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        acc[i][b] = arenite_requantise_halves_avx512(&r, acc[i][b], clamps_negative);
    }
}

ARENITE_AVX512_INLINE void finish(const arenite_conv_tile_t *t, int32_t channel, __m512i (*acc)[BLOCKS],
                                  const int pixels, const int blocks, const int clamps_negative) {
    const arenite_conv_2d_s8_t *p = t->params;
    int8_t *out = t->out + channel;
    const int32_t left = p->out_c - channel;
    ARENITE_UNROLL
    for (int b = 0; b < blocks; b++) {
        requantise(p, channel + b * ARENITE_BLOCK, acc, b, pixels, clamps_negative);
    }
    if (blocks == 4 && left >= 4 * ARENITE_BLOCK) {
        store_four(p, out, acc, pixels);
    } else if (blocks == 2 && left >= 2 * ARENITE_BLOCK) {
        store_two(p, out, acc, pixels);
    } else {
        store_any(p, out, acc, pixels, blocks, left);
    }
}

/* Behind the products: compilers, else, keep sums in memory from the first product on. GCC is told that they are registers
 * here; Clang, which would spill them for that, lets them wait in memory. */
#if defined(__clang__)
#define IS_REGISTER(v) ((void)0)
#define IS_IN_MEMORY(array) __asm__ volatile("" : : "r"(array) : "memory")
#else
#define IS_REGISTER(v) __asm__ volatile("" : "+v"(v))
#define IS_IN_MEMORY(array) ((void)0)
#endif

ARENITE_AVX512_INLINE void run(const arenite_conv_tile_t *t, int32_t channel, const int pixels,
                               const int blocks) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int32_t *bias = p->bias + arenite_blocks(p->out_c) * ARENITE_BLOCK + channel;
    const ptrdiff_t pitch = (ptrdiff_t)t->segments * t->words * BLOCK_WORD;
    const int8_t *w = p->weights + channel / ARENITE_BLOCK * pitch;
    const int8_t *const *pointers = t->pointers;
    __m512i acc[ARENITE_LARGE_TILE_PIXELS][BLOCKS];
    __m512i moves = _mm512_set1_epi8(-128);
    __asm__("" : "+v"(moves)); /* keeps Clang from moving single words, before they are broadcast */
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int b = 0; b < blocks; b++) {
            acc[i][b] = _mm512_loadu_si512(bias + b * ARENITE_BLOCK);
        }
    }
    const int8_t *const *const end = pointers + (ptrdiff_t)t->segments * pixels;
    const ptrdiff_t bytes = (ptrdiff_t)ARENITE_WORD * t->words;
    do { /* neither loop is ever empty; GCC spills accumulators if it cannot see that */
        const int8_t *x[ARENITE_LARGE_TILE_PIXELS];
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            x[i] = pointers[i];
        }
        ptrdiff_t k = 0;
        do {
            __m512i weights[BLOCKS];
            ARENITE_UNROLL
            for (int b = 0; b < blocks; b++) {
                weights[b] = _mm512_loadu_si512(w + b * pitch);
            }
            ARENITE_UNROLL
            for (int i = 0; i < pixels; i++) {
                const __m512i word = input_word(x[i] + k, moves);
                ARENITE_UNROLL
                for (int b = 0; b < blocks; b++) {
                    acc[i][b] = arenite_dot_avx512(acc[i][b], word, weights[b]);
                }
            }
            k += ARENITE_WORD;
            w += BLOCK_WORD;
        } while (k < bytes);
        pointers += pixels;
    } while (pointers < end);
    __m512i sums[ARENITE_LARGE_TILE_PIXELS][BLOCKS];
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int b = 0; b < blocks; b++) {
            IS_REGISTER(acc[i][b]);
            sums[i][b] = acc[i][b];
        }
    }
    IS_IN_MEMORY(sums);
    if (p->act_min >= p->out_zero_point) {
        finish(t, channel, sums, pixels, blocks, 1);
    } else {
        finish(t, channel, sums, pixels, blocks, 0);
    }
}

/* run with constants for the number of pixels and of blocks, so that accumulators are registers. */
#define RUN(pixels, blocks)                                                                                  \
    static ARENITE_AVX512 void run_##pixels##_##blocks(const arenite_conv_tile_t *t, int32_t channel) {      \
        run(t, channel, pixels, blocks);                                                                     \
    }
#define RUN_EACH(pixels) RUN(pixels, 1) RUN(pixels, 2) RUN(pixels, 3) RUN(pixels, 4)
#define LIST(pixels) {run_##pixels##_1, run_##pixels##_2, run_##pixels##_3, run_##pixels##_4}
RUN_EACH(1)
RUN_EACH(2)
RUN_EACH(3)
RUN_EACH(4)
RUN_EACH(5)
RUN_EACH(6)
RUN(7, 1)
RUN(7, 2)
RUN(8, 1)
RUN(8, 2)

typedef void (*run_t)(const arenite_conv_tile_t *t, int32_t channel);
static const run_t runs[ARENITE_LARGE_TILE_PIXELS][BLOCKS] = {
    LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), {run_7_1, run_7_2}, {run_8_1, run_8_2}};

void arenite_conv_2d_tile_avx512(const arenite_conv_tile_t *t) {
    const int32_t blocks = arenite_blocks(t->params->out_c);
    for (int32_t b = 0; b < blocks; b += BLOCKS) {
        const int32_t count = blocks - b < BLOCKS ? blocks - b : BLOCKS;
        runs[t->pixels - 1][count - 1](t, b * ARENITE_BLOCK);
    }
}
#endif
