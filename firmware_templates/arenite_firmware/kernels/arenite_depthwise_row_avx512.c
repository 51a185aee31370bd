/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_row.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "arenite_avx512.h"

#define BLOCK_GROUP (ARENITE_BLOCK * ARENITE_GROUP)

/* One block of channels of a row. */
typedef struct {
    const arenite_depthwise_row_t *row;
    int32_t channel;
    int32_t count; /* channels */
    __m512i bias;
    __m512i order;   /* byte 4 * channel + row from byte 16 * row + channel */
    __m512i outside; /* a column outside, moved by 128 */
    __m128i low;
    __m128i high;
    arenite_requantise_avx512_t requantise;
    __mmask16 inside; /* channels */
    int has_left;
    __m128i shift;
} block_t;

ARENITE_AVX512_INLINE __m128i load(const block_t *b, const int8_t *bytes, const int is_full) {
    return is_full ? _mm_loadu_si128((const __m128i *)(const void *)bytes)
                   : _mm_maskz_loadu_epi8(b->inside, bytes);
}

/* Rows of a column put side by side in every channel, moved by 128. */
ARENITE_AVX512_INLINE __m512i column(const block_t *b, const int8_t *const *rows, const int count,
                                     const int is_full) {
    __m512i v = _mm512_castsi128_si512(load(b, rows[0], is_full));
    v = _mm512_inserti32x4(v, load(b, rows[1], is_full), 1);
    v = _mm512_inserti32x4(v, load(b, rows[2], is_full), 2);
    if (count == 4) {
        v = _mm512_inserti32x4(v, load(b, rows[3], is_full), 3);
    }
    return _mm512_xor_si512(_mm512_permutexvar_epi8(b->order, v), _mm512_set1_epi8(-128));
}

/* A group of rows of input column x. */
ARENITE_AVX512_INLINE __m512i group_column(const block_t *b, int32_t group, int32_t x, const int is_full) {
    const int8_t *rows[ARENITE_GROUP];
    ARENITE_UNROLL
    for (int i = 0; i < ARENITE_GROUP; i++) {
        rows[i] = arenite_depthwise_pixel(b->row, ARENITE_GROUP * group + i, x) + b->channel;
    }
    return column(b, rows, ARENITE_GROUP, is_full);
}

/* The next column of up to 3 rows. */
ARENITE_AVX512_INLINE __m512i next_column(const block_t *b, arenite_depthwise_walk_t *walk,
                                          const int is_full) {
    const int8_t *rows[3];
    return arenite_next_column(walk, b->row, rows) ? column(b, rows, 3, is_full) : b->outside;
}

ARENITE_AVX512_INLINE void finish(const block_t *b, __m512i acc, int8_t *out, const int is_full,
                                  const int clamps_negative) {
    if (b->has_left) {
        acc = arenite_shift_left_avx512(acc, b->shift);
    }
    const __m512i values = arenite_requantise_avx512(&b->requantise, acc, clamps_negative);
    arenite_store_avx512(out, values, is_full ? ARENITE_BLOCK : b->count, b->low, b->high);
}

/* Any window. */
ARENITE_AVX512_INLINE void run_any(const block_t *b, const int8_t *w, int8_t *out, const int is_full) {
    const arenite_depthwise_conv_2d_s8_t *p = b->row->params;
    for (int32_t i = 0; i < p->out_w; i++, out += p->in_c) {
        const int8_t *weights = w;
        __m512i acc = b->bias;
        int32_t x = i * p->stride_w - p->pad_left;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            for (int32_t g = 0; g < b->row->groups; g++, weights += BLOCK_GROUP) {
                const __m512i input = group_column(b, g, x, is_full);
                acc = _mm512_dpbusd_epi32(acc, input, _mm512_loadu_si512(weights));
            }
        }
        finish(b, acc, out, is_full, 0);
    }
}

/* A window of 3 x 3, not dilated: a column is put together once and serves the windows that share it. */
ARENITE_AVX512_INLINE void run_3x3(const block_t *b, const int8_t *w, int8_t *out, const int is_full,
                                   const int stride, const int clamps_negative) {
    const arenite_depthwise_conv_2d_s8_t *p = b->row->params;
    const __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + BLOCK_GROUP),
                  w2 = _mm512_loadu_si512(w + 2 * BLOCK_GROUP);
    arenite_depthwise_walk_t walk = arenite_start_walk(b->row, b->channel);
    __m512i x0 = next_column(b, &walk, is_full), x1 = x0;
    if (stride == 1) {
        x1 = next_column(b, &walk, is_full);
    }
    for (int32_t i = 0; i < p->out_w; i++, out += p->in_c) {
        if (stride == 2) {
            x1 = next_column(b, &walk, is_full);
        }
        const __m512i x2 = next_column(b, &walk, is_full);
        const __m512i acc = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(b->bias, x0, w0), x1, w1);
        finish(b, _mm512_dpbusd_epi32(acc, x2, w2), out, is_full, clamps_negative);
        x0 = stride == 1 ? x1 : x2;
        x1 = x2;
    }
}

ARENITE_AVX512_INLINE void run(const block_t *b, const int8_t *w, int8_t *out, const int is_full) {
    const arenite_depthwise_conv_2d_s8_t *p = b->row->params;
    const int is_3x3 = p->kernel_w == 3 && p->kernel_h <= 3 && p->dilation_w == 1 && p->stride_w <= 2;
    const int clamps_negative = p->act_min >= p->out_zero_point;
    if (!is_3x3) {
        run_any(b, w, out, is_full);
    } else if (p->stride_w == 1 && clamps_negative) {
        run_3x3(b, w, out, is_full, 1, 1);
    } else if (p->stride_w == 1) {
        run_3x3(b, w, out, is_full, 1, 0);
    } else if (clamps_negative) {
        run_3x3(b, w, out, is_full, 2, 1);
    } else {
        run_3x3(b, w, out, is_full, 2, 0);
    }
}

ARENITE_AVX512_INLINE __m512i channel_order(void) {
    const __m512i rows = _mm512_set1_epi32(0x30201000);
    const __m512i channels = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_or_si512(rows, _mm512_mullo_epi32(channels, _mm512_set1_epi32(0x01010101)));
}

ARENITE_AVX512 void arenite_depthwise_row_avx512(const arenite_depthwise_row_t *r) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    const int32_t *bias = p->bias + ARENITE_BLOCK * arenite_blocks(p->in_c);
    const int8_t *w = p->weights;
    block_t b;
    b.row = r;
    b.order = channel_order();
    b.outside = _mm512_set1_epi8((int8_t)(p->in_zero_point ^ -128));
    b.low = _mm_set1_epi8((int8_t)p->act_min);
    b.high = _mm_set1_epi8((int8_t)p->act_max);
    for (b.channel = 0; b.channel < p->in_c; b.channel += ARENITE_BLOCK) {
        b.count = p->in_c - b.channel;
        b.bias = _mm512_loadu_si512(bias + b.channel);
        b.has_left = arenite_has_left_avx512(p->shift + b.channel);
        b.shift = _mm_loadu_si128((const __m128i *)(const void *)(p->shift + b.channel));
        b.requantise = arenite_load_requantise_avx512(
            p->multiplier + b.channel, arenite_block_constants(p->multiplier, p->in_c, b.channel),
            p->out_zero_point);
        if (b.count >= ARENITE_BLOCK) {
            run(&b, w, r->out + b.channel, 1);
        } else {
            b.inside = (__mmask16)((1u << b.count) - 1u);
            run(&b, w, r->out + b.channel, 0);
        }
        w += (ptrdiff_t)p->kernel_w * r->groups * BLOCK_GROUP;
    }
}
#endif
