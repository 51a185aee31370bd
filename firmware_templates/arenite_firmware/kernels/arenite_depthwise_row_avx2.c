/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_depthwise_row.h"

#if defined(__x86_64__)
#include <stddef.h>

#include "arenite_avx2.h"

#define QUARTERS 4 /* of a block: vectors of [4 channels][4 rows] as int16 */
#define BLOCK_GROUP (ARENITE_BLOCK * ARENITE_GROUP)

ARENITE_AVX2_INLINE __m128i load(const int8_t *bytes, int32_t count) {
    if (count >= ARENITE_BLOCK) {
        return _mm_loadu_si128((const __m128i *)(const void *)bytes);
    }
    int8_t all[ARENITE_BLOCK] = {0};
    for (int32_t i = 0; i < count; i++) {
        all[i] = bytes[i];
    }
    return _mm_loadu_si128((const __m128i *)(const void *)all);
}

/* sums[q] += a group of rows of input column x, moved by 128, times their weights. */
ARENITE_AVX2_INLINE void add_group(const arenite_depthwise_row_t *r, int32_t group, int32_t x,
                                   int32_t channel, const int8_t *w, __m256i *sums) {
    const int32_t ky = ARENITE_GROUP * group, count = r->params->in_c - channel;
    const __m128i r0 = load(arenite_depthwise_pixel(r, ky, x) + channel, count);
    const __m128i r1 = load(arenite_depthwise_pixel(r, ky + 1, x) + channel, count);
    const __m128i r2 = load(arenite_depthwise_pixel(r, ky + 2, x) + channel, count);
    const __m128i r3 = load(arenite_depthwise_pixel(r, ky + 3, x) + channel, count);
    const __m128i low01 = _mm_unpacklo_epi8(r0, r1), low23 = _mm_unpacklo_epi8(r2, r3);
    const __m128i high01 = _mm_unpackhi_epi8(r0, r1), high23 = _mm_unpackhi_epi8(r2, r3);
    const __m128i quarter[QUARTERS] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                                       _mm_unpacklo_epi16(high01, high23),
                                       _mm_unpackhi_epi16(high01, high23)};
    ARENITE_UNROLL
    for (int q = 0; q < QUARTERS; q++) {
        const __m256i x = _mm256_cvtepu8_epi16(_mm_xor_si128(quarter[q], _mm_set1_epi8(-128)));
        const __m256i weights =
            _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(w + 16 * q)));
        sums[q] = _mm256_add_epi32(sums[q], _mm256_madd_epi16(x, weights));
    }
}

/* One block of channels of output pixel `pixel`. */
ARENITE_AVX2_INLINE void run(const arenite_depthwise_row_t *r, int32_t pixel, int32_t channel,
                             const int8_t *w) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    const int32_t *bias = p->bias + ARENITE_BLOCK * arenite_blocks(p->in_c) + channel;
    int32_t x = pixel * p->stride_w - p->pad_left;
    __m256i sums[QUARTERS];
    ARENITE_UNROLL
    for (int q = 0; q < QUARTERS; q++) {
        sums[q] = _mm256_setzero_si256();
    }
    for (int32_t kx = 0; kx < p->kernel_w; kx++, x += p->dilation_w) {
        for (int32_t g = 0; g < r->groups; g++, w += BLOCK_GROUP) {
            add_group(r, g, x, channel, w, sums);
        }
    }
    arenite_finish_avx2(sums, bias, p->multiplier + channel, p->shift + channel, p->out_zero_point,
                        r->out + (ptrdiff_t)pixel * p->in_c + channel, p->in_c - channel, p->act_min,
                        p->act_max);
}

ARENITE_AVX2 void arenite_depthwise_row_avx2(const arenite_depthwise_row_t *r) {
    const arenite_depthwise_conv_2d_s8_t *p = r->params;
    const int8_t *w = p->weights;
    for (int32_t channel = 0; channel < p->in_c; channel += ARENITE_BLOCK) {
        for (int32_t pixel = 0; pixel < p->out_w; pixel++) {
            run(r, pixel, channel, w);
        }
        w += (ptrdiff_t)p->kernel_w * r->groups * BLOCK_GROUP;
    }
}
#endif
