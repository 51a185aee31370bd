/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_conv_2d_row_avx512.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "arenite_avx512.h"
#include "arenite_conv_2d_s8_host.h"
#include "arenite_window_copy.h"

#define GROUP 4  /* pixels of a vector */
#define GROUPS 4 /* at most at a time: 16 accumulators, 4 inputs, 4 words of them, 1 weight */
#define CHUNK 16 /* bytes of a pixel in a vector */
#define QUARTERS (ARENITE_BLOCK / 4)
#define BLOCK_WORD (ARENITE_BLOCK * ARENITE_WORD)
#define MAX_BLOCKS 1

typedef struct {
    const arenite_conv_2d_s8_t *params;
    const int8_t *runs[ARENITE_HOST_RUNS]; /* of the first pixel */
    int32_t words;                         /* of a run */
    ptrdiff_t distance;                    /* bytes from pixel to pixel */
} row_t;

/* 16 bytes of each of 4 pixels, moved by 128. */
ARENITE_AVX512_INLINE __m512i load_group(const int8_t *x, ptrdiff_t distance, const int is_dense) {
    __m512i v;
    if (is_dense) {
        v = _mm512_loadu_si512(x);
    } else {
        v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)x));
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)(x + distance)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)(x + 2 * distance)), 2);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)(x + 3 * distance)), 3);
    }
    return _mm512_xor_si512(v, _mm512_set1_epi8(-128));
}

ARENITE_AVX512_INLINE __m512i four_times(const void *sixteen_bytes) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)sixteen_bytes));
}

/* Word `word` of every input times the weights of 16 channels. */
#define ADD_WORD(word)                                                                                       \
    do {                                                                                                     \
        __m512i repeated[GROUPS];                                                                            \
        ARENITE_UNROLL                                                                                       \
        for (int g = 0; g < groups; g++) {                                                                   \
            repeated[g] = _mm512_shuffle_epi32(input[g], (_MM_PERM_ENUM)((word) * 0x55));                    \
        }                                                                                                    \
        ARENITE_UNROLL                                                                                       \
        for (int q = 0; q < QUARTERS; q++) {                                                                 \
            const __m512i weights = four_times(w + (word) * BLOCK_WORD + q * CHUNK);                         \
            ARENITE_UNROLL                                                                                   \
            for (int g = 0; g < groups; g++) {                                                               \
                acc[g][q] = arenite_dot_avx512(acc[g][q], repeated[g], weights);                             \
            }                                                                                                \
        }                                                                                                    \
    } while (0)

/* Values of 16 channels from sums [pixels / 4][quarters] with shifts of any kind. */
ARENITE_AVX512 static __attribute__((noinline)) void
requantise_any(const arenite_conv_2d_s8_t *p, int32_t channel, __m512i (*sums)[QUARTERS], int32_t groups) {
    const int64_t *constants = arenite_block_constants(p->multiplier, p->out_c, channel);
    for (int q = 0; q < QUARTERS; q++) {
        const arenite_requantise_avx512_t r =
            arenite_load_requantise_quarter_avx512(p->multiplier + channel, constants, q, p->out_zero_point);
        int32_t four;
        __builtin_memcpy(&four, p->shift + channel + 4 * q, sizeof four);
        for (int32_t g = 0; g < groups; g++) {
            const __m512i shifted = arenite_shift_left_avx512(sums[g][q], _mm_set1_epi32(four));
            sums[g][q] = arenite_requantise_avx512(&r, shifted, 0);
        }
    }
}

#define COPY(to, from)                                                                                       \
    do {                                                                                                     \
        ARENITE_UNROLL                                                                                       \
        for (int g = 0; g < groups; g++) {                                                                   \
            ARENITE_UNROLL                                                                                   \
            for (int q = 0; q < QUARTERS; q++) {                                                             \
                (to)[g][q] = (from)[g][q];                                                                   \
            }                                                                                                \
        }                                                                                                    \
    } while (0)

ARENITE_AVX512_INLINE void requantise(const arenite_conv_2d_s8_t *p, int32_t channel,
                                      __m512i (*acc)[QUARTERS], const int groups, const int clamps_negative) {
    if (!arenite_suits_halves_avx512(p->shift + channel)) {
        __m512i sums[GROUPS][QUARTERS]; /* a copy: sums whose address is known would never be registers */
        COPY(sums, acc);
        requantise_any(p, channel, sums, groups);
        COPY(acc, sums);
        return;
    }
    const int64_t *constants = arenite_block_halves(p->multiplier, p->out_c, channel);
    ARENITE_UNROLL
    for (int q = 0; q < QUARTERS; q++) {
        const arenite_halves_avx512_t r =
            arenite_load_halves_quarter_avx512(p->multiplier + channel, constants, q);
        ARENITE_UNROLL
        for (int g = 0; g < groups; g++) {
            acc[g][q] = arenite_requantise_halves_avx512(&r, acc[g][q], clamps_negative);
        }
    }
}

ARENITE_AVX512_INLINE void finish(const arenite_conv_2d_s8_t *p, int32_t channel, __m512i (*acc)[QUARTERS],
                                  int8_t *out, int32_t pixels, const int groups, const int clamps_negative) {
    const __m512i low = _mm512_set1_epi8((int8_t)p->act_min), high = _mm512_set1_epi8((int8_t)p->act_max);
    const int32_t channels = p->out_c - channel;
    const __mmask16 inside = (__mmask16)(channels < ARENITE_BLOCK ? (1u << channels) - 1u : 0xFFFFu);
    requantise(p, channel, acc, groups, clamps_negative);
    ARENITE_UNROLL
    for (int g = 0; g < groups; g++, pixels -= GROUP) {
        const __m512i bytes = arenite_pack_avx512(acc[g], low, high);
        if (p->out_c == ARENITE_BLOCK && pixels >= GROUP) {
            _mm512_storeu_si512(out, bytes);
            out += GROUP * ARENITE_BLOCK;
            continue;
        }
        __m128i quarters[GROUP];
        _mm512_storeu_si512(quarters, bytes);
        for (int i = 0; i < GROUP && i < pixels; i++, out += p->out_c) {
            _mm_mask_storeu_epi8(out, inside, quarters[i]);
        }
    }
}

/* Up to 4 * groups pixels from `first` on, a block of channels. */
ARENITE_AVX512_INLINE void run(const row_t *t, int32_t first, int32_t channel, int8_t *out, const int groups,
                               const int is_dense) {
    const arenite_conv_2d_s8_t *p = t->params;
    const int32_t *bias = p->bias + arenite_blocks(p->out_c) * ARENITE_BLOCK + channel;
    const int8_t *w = p->weights + (ptrdiff_t)(channel / ARENITE_BLOCK) * p->kernel_h * t->words * BLOCK_WORD;
    const int32_t chunks = t->words / GROUP, rest = t->words % GROUP;
    __m512i acc[GROUPS][QUARTERS];
    ARENITE_UNROLL
    for (int q = 0; q < QUARTERS; q++) {
        ARENITE_UNROLL
        for (int g = 0; g < groups; g++) {
            acc[g][q] = four_times(bias + q * GROUP);
        }
    }
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        const int8_t *x = t->runs[ky] + first * t->distance;
        __m512i input[GROUPS];
        for (int32_t i = 0; i < chunks; i++, x += CHUNK, w += CHUNK / ARENITE_WORD * BLOCK_WORD) {
            ARENITE_UNROLL
            for (int g = 0; g < groups; g++) {
                input[g] = load_group(x + g * GROUP * t->distance, t->distance, is_dense);
            }
            ADD_WORD(0);
            ADD_WORD(1);
            ADD_WORD(2);
            ADD_WORD(3);
        }
        if (rest > 0) {
            ARENITE_UNROLL
            for (int g = 0; g < groups; g++) {
                input[g] = load_group(x + g * GROUP * t->distance, t->distance, is_dense);
            }
            ADD_WORD(0);
            if (rest > 1) {
                ADD_WORD(1);
            }
            if (rest > 2) {
                ADD_WORD(2);
            }
            w += rest * BLOCK_WORD;
        }
    }
    const int32_t left = p->out_w - first;
    out += (ptrdiff_t)first * p->out_c + channel;
    if (p->act_min >= p->out_zero_point) {
        finish(p, channel, acc, out, left, groups, 1);
    } else {
        finish(p, channel, acc, out, left, groups, 0);
    }
}

/* run with constants, so that accumulators are registers. */
#define RUN(groups)                                                                                          \
    static ARENITE_AVX512 void dense_##groups(const row_t *t, int32_t first, int32_t channel, int8_t *out) { \
        run(t, first, channel, out, groups, 1);                                                              \
    }                                                                                                        \
    static ARENITE_AVX512 void apart_##groups(const row_t *t, int32_t first, int32_t channel, int8_t *out) { \
        run(t, first, channel, out, groups, 0);                                                              \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)

typedef void (*run_t)(const row_t *t, int32_t first, int32_t channel, int8_t *out);
static const run_t runs[2][GROUPS] = {{apart_1, apart_2, apart_3, apart_4},
                                      {dense_1, dense_2, dense_3, dense_4}};

/* Input bytes that a row's vectors touch, those of pixels that are not there included. */
static ptrdiff_t touched_bytes(const arenite_conv_2d_s8_t *p) {
    const ptrdiff_t pixels = (p->out_w + GROUP - 1) / GROUP * GROUP;
    const ptrdiff_t run = (p->kernel_w * p->in_c + CHUNK - 1) / CHUNK * CHUNK;
    return (pixels - 1) * p->stride_w * p->in_c + run;
}

int arenite_conv_2d_row_suits_avx512(const arenite_conv_2d_s8_t *p) {
    return p->out_c <= MAX_BLOCKS * ARENITE_BLOCK && p->out_w >= GROUP &&
           p->kernel_h * touched_bytes(p) <= ARENITE_HOST_COPIES;
}

ARENITE_AVX512 void arenite_conv_2d_row_avx512(const arenite_conv_2d_s8_t *p, const int8_t *const *rows,
                                               int8_t *out) {
    int8_t copies[ARENITE_HOST_COPIES + ARENITE_COPY_CHUNK];
    int8_t *own = copies;
    const ptrdiff_t touched = touched_bytes(p);
    const int32_t pixels = (p->out_w - 1) * p->stride_w + p->kernel_w;
    const int lies_inside = p->pad_left == 0 && touched <= (ptrdiff_t)p->in_w * p->in_c;
    row_t t;
    t.params = p;
    t.words = (p->kernel_w * p->in_c + ARENITE_WORD - 1) / ARENITE_WORD;
    t.distance = (ptrdiff_t)p->stride_w * p->in_c;
    for (int32_t ky = 0; ky < p->kernel_h; ky++) {
        t.runs[ky] = rows[ky];
        if (rows[ky] == NULL || !lies_inside) {
            arenite_copy_pixels(p, rows[ky], -p->pad_left, pixels, own);
            t.runs[ky] = own;
            own += touched;
        }
    }
    const run_t *run_groups = runs[t.distance == CHUNK];
    for (int32_t x = 0; x < p->out_w; x += GROUPS * GROUP) {
        const int32_t groups = (p->out_w - x + GROUP - 1) / GROUP;
        for (int32_t channel = 0; channel < p->out_c; channel += ARENITE_BLOCK) {
            run_groups[groups < GROUPS ? groups - 1 : GROUPS - 1](&t, x, channel, out);
        }
    }
}
#endif
