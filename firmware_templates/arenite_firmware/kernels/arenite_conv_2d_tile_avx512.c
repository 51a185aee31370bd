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

/* acc + products of 4 bytes each, x unsigned. With many accumulators GCC copies them about unless it sees one operand that
 * changes. */
ARENITE_AVX512_INLINE __m512i dot(__m512i acc, __m512i x, __m512i w) {
#if defined(__clang__)
    return _mm512_dpbusd_epi32(acc, x, w);
#else
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(x), "v"(w));
    return acc;
#endif
}

/* 64 values of one pixel, clamped. */
ARENITE_AVX512_INLINE void store_four(int8_t *out, const __m512i *v, __m512i low, __m512i high) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    const __m512i clamped = _mm512_min_epi8(_mm512_max_epi8(bytes, low), high);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi32(order, clamped));
}

/* A block of every pixel, clamped. */
ARENITE_AVX512_INLINE void store_block(int8_t *out, int32_t distance, __m512i (*v)[BLOCKS], const int b,
                                       const int pixels, int32_t count, __m128i low, __m128i high) {
    const __mmask16 mask = (__mmask16)((1u << (count & (ARENITE_BLOCK - 1))) - 1u);
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++, out += distance) {
        const __m128i bytes = _mm_min_epi8(_mm_max_epi8(_mm512_cvtsepi32_epi8(v[i][b]), low), high);
        if (count >= ARENITE_BLOCK) {
            _mm_storeu_si128((__m128i *)(void *)out, bytes);
        } else {
            _mm_mask_storeu_epi8(out, mask, bytes);
        }
    }
}

ARENITE_AVX512_INLINE void finish(const arenite_conv_tile_t *t, int32_t channel, __m512i (*acc)[BLOCKS],
                                  const int pixels, const int blocks, const int clamps_negative) {
    const arenite_conv_2d_s8_t *p = t->params;
    int8_t *out = t->out + channel;
    const int32_t left = p->out_c - channel;
    ARENITE_UNROLL
    for (int b = 0; b < blocks; b++) {
        const int32_t first = channel + b * ARENITE_BLOCK;
        const arenite_requantise_avx512_t r = arenite_load_requantise_avx512(
            p->multiplier + first, p->shift + first, arenite_block_constants(p->multiplier, p->out_c, first),
            p->out_zero_point);
        if (r.has_left) {
            ARENITE_UNROLL
            for (int i = 0; i < pixels; i++) {
                acc[i][b] = _mm512_sllv_epi32(acc[i][b], r.left);
            }
        }
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            acc[i][b] = arenite_requantise_avx512(&r, acc[i][b], clamps_negative);
        }
    }
    if (blocks == BLOCKS && left >= BLOCKS * ARENITE_BLOCK) {
        const __m512i low = _mm512_set1_epi8((int8_t)p->act_min), high = _mm512_set1_epi8((int8_t)p->act_max);
        ARENITE_UNROLL
        for (int i = 0; i < pixels; i++) {
            store_four(out + (ptrdiff_t)i * p->out_c, acc[i], low, high);
        }
        return;
    }
    const __m128i low = _mm_set1_epi8((int8_t)p->act_min), high = _mm_set1_epi8((int8_t)p->act_max);
    ARENITE_UNROLL
    for (int b = 0; b < blocks - 1; b++) {
        store_block(out + b * ARENITE_BLOCK, p->out_c, acc, b, pixels, ARENITE_BLOCK, low, high);
    }
    out += (blocks - 1) * ARENITE_BLOCK;
    const int32_t count = left - (blocks - 1) * ARENITE_BLOCK;
    if (count >= ARENITE_BLOCK) {
        store_block(out, p->out_c, acc, blocks - 1, pixels, ARENITE_BLOCK, low, high);
    } else {
        store_block(out, p->out_c, acc, blocks - 1, pixels, count, low, high);
    }
}

ARENITE_AVX512_INLINE void run(const arenite_conv_tile_t *t, int32_t channel, const int pixels,
                               const int blocks) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int32_t *bias = p->bias + arenite_blocks(p->out_c) * ARENITE_BLOCK + channel;
    const ptrdiff_t pitch = (ptrdiff_t)t->segments * t->words * BLOCK_WORD;
    const int8_t *w = p->weights + channel / ARENITE_BLOCK * pitch;
    const int8_t *const *pointers = t->pointers;
    __m512i acc[ARENITE_TILE_PIXELS][BLOCKS];
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
        const int8_t *x[ARENITE_TILE_PIXELS];
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
                    acc[i][b] = dot(acc[i][b], word, weights[b]);
                }
            }
            k += ARENITE_WORD;
            w += BLOCK_WORD;
        } while (k < bytes);
        pointers += pixels;
    } while (pointers < end);
    __m512i sums[ARENITE_TILE_PIXELS][BLOCKS];
    ARENITE_UNROLL
    for (int i = 0; i < pixels; i++) {
        ARENITE_UNROLL
        for (int b = 0; b < blocks; b++) {
            sums[i][b] = acc[i][b];
        }
    }
    /* The sums wait in memory: GCC, else, keeps some there from the first product on. */
    __asm__ volatile("" : : "r"(sums) : "memory");
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

typedef void (*run_t)(const arenite_conv_tile_t *t, int32_t channel);
static const run_t runs[ARENITE_TILE_PIXELS][BLOCKS] = {LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6)};

void arenite_conv_2d_tile_avx512(const arenite_conv_tile_t *t) {
    const int32_t blocks = arenite_blocks(t->params->out_c);
    for (int32_t b = 0; b < blocks; b += BLOCKS) {
        const int32_t count = blocks - b < BLOCKS ? blocks - b : BLOCKS;
        runs[t->pixels - 1][count - 1](t, b * ARENITE_BLOCK);
    }
}
#endif
