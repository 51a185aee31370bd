/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_row.h"

#if defined(__x86_64__)
#include "arenite_avx2.h"

#define QUARTERS 2 /* of a half block: vectors of [4 channels][4 rows] as int16 */
#define QUARTER_GROUP (4 * ARENITE_GROUP)
#define BLOCK_GROUP (ARENITE_BLOCK * ARENITE_GROUP)

/* 8 channels of a row. */
typedef struct {
    const arenite_depthwise_row_t *row;
    const int8_t *weights; /* of the half block in its first group */
    int32_t channel;
    int32_t count; /* channels */
    __m256i bias;
    __m128i low;
    __m128i high;
    arenite_requantise_avx2_t requantise;
} half_t;

/* Three rows of a column, or their weights: each lane has two of int16, then the third alone. */
typedef struct {
    __m256i pair;
    __m256i third;
} column_t;

ARENITE_AVX2_INLINE __m128i load(const half_t *h, const int8_t *bytes, const int is_full) {
    if (is_full) {
        return _mm_loadl_epi64((const __m128i *)(const void *)bytes);
    }
    int8_t all[ARENITE_HALF] = {0};
    for (int32_t i = 0; i < h->count; i++) {
        all[i] = bytes[i];
    }
    return _mm_loadl_epi64((const __m128i *)(const void *)all);
}

ARENITE_AVX2_INLINE void finish(const half_t *h, __m256i *acc, int8_t *out, const int32_t pixels,
                                const int is_full, const int clamps_negative) {
    const int32_t count = is_full ? ARENITE_HALF : h->count;
    if (h->requantise.has_left) {
        acc[0] = _mm256_sllv_epi32(acc[0], h->requantise.left);
        acc[1] = _mm256_sllv_epi32(acc[1], h->requantise.left);
    }
    acc[0] = arenite_requantise_avx2(&h->requantise, acc[0], clamps_negative);
    acc[1] = arenite_requantise_avx2(&h->requantise, acc[1], clamps_negative);
    const __m128i bytes = arenite_bytes_avx2(acc[0], acc[1], h->low, h->high);
    arenite_store_8_avx2(out, bytes, count);
    if (pixels > 1) {
        arenite_store_8_avx2(out + h->row->params->in_c, _mm_unpackhi_epi64(bytes, bytes), count);
    }
}

/* sums[q] += a group of rows of input column x times their weights. */
ARENITE_AVX2_INLINE void add_group(const half_t *h, int32_t group, int32_t x, const int8_t *w, __m256i *sums,
                                   const int is_full) {
    __m128i rows[ARENITE_GROUP];
    for (int32_t i = 0; i < ARENITE_GROUP; i++) {
        const int8_t *pixel = arenite_depthwise_pixel(h->row, ARENITE_GROUP * group + i, x);
        rows[i] = load(h, pixel + h->channel, is_full);
    }
    const __m128i rows01 = _mm_unpacklo_epi8(rows[0], rows[1]), rows23 = _mm_unpacklo_epi8(rows[2], rows[3]);
    const __m128i quarter[QUARTERS] = {_mm_unpacklo_epi16(rows01, rows23),
                                       _mm_unpackhi_epi16(rows01, rows23)};
    ARENITE_UNROLL
    for (int q = 0; q < QUARTERS; q++) {
        const __m256i weights = arenite_widen_avx2(w + QUARTER_GROUP * q);
        const __m256i products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(quarter[q]), weights);
        sums[q] = _mm256_add_epi32(sums[q], products);
    }
}

/* Any window. */
ARENITE_AVX2_INLINE void run_any(const half_t *h, int8_t *out, const int is_full) {
    const arenite_depthwise_conv_2d_s8_t *p = h->row->params;
    for (int32_t i = 0; i < p->out_w; i++, out += p->in_c) {
        const int8_t *w = h->weights;
        __m256i sums[QUARTERS] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        int32_t x = i * p->stride_w - p->pad_left;
        for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
            for (int32_t g = 0; g < h->row->groups; g++, w += BLOCK_GROUP) {
                add_group(h, g, x, w, sums, is_full);
            }
        }
        const __m256i sum = _mm256_add_epi32(h->bias, arenite_add_pairs_avx2(sums[0], sums[1]));
        __m256i acc[2] = {sum, sum};
        finish(h, acc, out, 1, is_full, 0);
    }
}

ARENITE_AVX2_INLINE column_t make_column(__m128i row0, __m128i row1, __m128i row2) {
    column_t c;
    c.pair = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(row0, row1));
    c.third = _mm256_cvtepi8_epi32(row2); /* its upper half is multiplied by 0 */
    return c;
}

ARENITE_AVX2_INLINE column_t next_column(const half_t *h, arenite_depthwise_walk_t *walk, const int is_full) {
    const int8_t *rows[3];
    if (arenite_next_column(walk, h->row, rows)) {
        return make_column(load(h, rows[0], is_full), load(h, rows[1], is_full), load(h, rows[2], is_full));
    }
    const __m128i outside = load(h, h->row->outside + h->channel, is_full);
    return make_column(outside, outside, outside);
}

/* The weights of column kx of a window of up to 3 rows. */
ARENITE_AVX2_INLINE column_t load_weights(const half_t *h, int32_t kx) {
    const __m256i rows = arenite_load_avx2(h->weights + BLOCK_GROUP * kx);
    /* Bytes 0 and 1 of each 4 to the upper halves of int16, or byte 2 of each 4. */
    const __m256i to_pair =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
    const __m256i to_third = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, 2, -1, -1, -1, 6, -1, -1, -1, 10, -1, -1, -1, 14, -1, -1));
    column_t c;
    c.pair = _mm256_srai_epi16(_mm256_shuffle_epi8(rows, to_pair), 8);
    c.third = _mm256_srai_epi16(_mm256_shuffle_epi8(rows, to_third), 8);
    return c;
}

ARENITE_AVX2_INLINE __m256i add_column(__m256i acc, column_t x, column_t w) {
    acc = _mm256_add_epi32(acc, _mm256_madd_epi16(x.pair, w.pair));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(x.third, w.third));
}

ARENITE_AVX2_INLINE __m256i add_window(const half_t *h, const column_t *x, const column_t *w) {
    return add_column(add_column(add_column(h->bias, x[0], w[0]), x[1], w[1]), x[2], w[2]);
}

/* A window of 3 x 3, not dilated: two pixels at a time, a column serves the windows that share it. */
ARENITE_AVX2_INLINE void run_3x3(const half_t *h, int8_t *out, const int is_full, const int stride,
                                 const int clamps_negative) {
    const arenite_depthwise_conv_2d_s8_t *p = h->row->params;
    const column_t w[3] = {load_weights(h, 0), load_weights(h, 1), load_weights(h, 2)};
    const int kept = 3 - stride; /* columns that the next two pixels see again */
    arenite_depthwise_walk_t walk = arenite_start_walk(h->row, h->channel);
    column_t x[5];
    ARENITE_UNROLL
    for (int k = 0; k < kept; k++) {
        x[k] = next_column(h, &walk, is_full);
    }
    for (int32_t left = p->out_w; left > 0; left -= 2, out += 2 * (ptrdiff_t)p->in_c) {
        ARENITE_UNROLL
        for (int k = kept; k < 3 + stride; k++) {
            x[k] = next_column(h, &walk, is_full);
        }
        __m256i acc[2] = {add_window(h, x, w), add_window(h, x + stride, w)};
        finish(h, acc, out, left, is_full, clamps_negative);
        ARENITE_UNROLL
        for (int k = 0; k < kept; k++) {
            x[k] = x[2 * stride + k];
        }
    }
}

ARENITE_AVX2_INLINE void run(const half_t *h, int8_t *out, const int is_full) {
    const arenite_depthwise_conv_2d_s8_t *p = h->row->params;
    const int is_3x3 = p->kernel_w == 3 && p->kernel_h <= 3 && p->dilation_w == 1 && p->stride_w <= 2;
    const int clamps_negative = p->act_min >= p->out_zero_point;
    if (!is_3x3) {
        run_any(h, out, is_full);
    } else if (p->stride_w == 1 && clamps_negative) {
        run_3x3(h, out, is_full, 1, 1);
    } else if (p->stride_w == 1) {
        run_3x3(h, out, is_full, 1, 0);
    } else if (clamps_negative) {
        run_3x3(h, out, is_full, 2, 1);
    } else {
        run_3x3(h, out, is_full, 2, 0);
    }
}

ARENITE_AVX2 void arenite_depthwise_row_avx2(const arenite_depthwise_row_t *r) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    const ptrdiff_t pitch = (ptrdiff_t)p->kernel_w * r->groups * BLOCK_GROUP;
    half_t h;
    h.row = r;
    h.low = _mm_set1_epi8((int8_t)p->act_min);
    h.high = _mm_set1_epi8((int8_t)p->act_max);
    for (h.channel = 0; h.channel < p->in_c; h.channel += ARENITE_HALF) {
        h.weights =
            p->weights + h.channel / ARENITE_BLOCK * pitch + (h.channel & ARENITE_HALF) * ARENITE_GROUP;
        h.count = p->in_c - h.channel;
        h.bias = arenite_load_avx2(p->bias + h.channel);
        h.requantise =
            arenite_load_requantise_avx2(p->multiplier, p->shift, p->in_c, h.channel, p->out_zero_point);
        if (h.count >= ARENITE_HALF) {
            run(&h, r->out + h.channel, 1);
        } else {
            run(&h, r->out + h.channel, 0);
        }
    }
}
#endif
