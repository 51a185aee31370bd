/* SPDX-License-Identifier: Apache-2.0 */
/* What the averages share. */
#ifndef ARENITE_MEAN_H
#define ARENITE_MEAN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__SSE2__)
#include <immintrin.h>

#define ARENITE_MEAN_CHANNELS 16 /* that are summed at once */
#define ARENITE_MEAN_PIXELS 256  /* whose sums fit 16 bits */

/* Add up to ARENITE_MEAN_PIXELS pixels to the sums of ARENITE_MEAN_CHANNELS channels. */
static inline void arenite_sum_pixels(const int8_t *in, int32_t pixels, int32_t channels, int32_t *sums) {
    __m128i low = _mm_setzero_si128(), high = low;
    for (int32_t x = 0; x < pixels; x++, in += channels) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)in);
        low = _mm_add_epi16(low, _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8));
        high = _mm_add_epi16(high, _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8));
    }
    const __m128i wide[4] = {_mm_unpacklo_epi16(low, low), _mm_unpackhi_epi16(low, low),
                             _mm_unpacklo_epi16(high, high), _mm_unpackhi_epi16(high, high)};
    for (int32_t i = 0; i < 4; i++) {
        __m128i *to = (__m128i *)(void *)(sums + 4 * i);
        _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm_srai_epi32(wide[i], 16)));
    }
}
#endif

/* sum / count, rounded half away from zero; count > 0. */
static inline int32_t arenite_rounded_mean(int32_t sum, int32_t count) {
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* Add a row of pixels to the sums of their channels; the first row starts the sums. */
static inline void arenite_sum_row(const int8_t *row, int32_t width, int32_t channels, int32_t first,
                                   int32_t *sums) {
    int32_t c = 0;
#if defined(__ARM_FEATURE_MVE)
    for (; c <= channels - 4; c += 4) {
        const int8_t *in = row + c;
        int32x4_t sum = first ? vdupq_n_s32(0) : vld1q_s32(sums + c);
        for (int32_t x = 0; x < width; x++, in += channels) {
            sum = vaddq_s32(sum, vldrbq_s32(in));
        }
        vst1q_s32(sums + c, sum);
    }
#elif defined(__SSE2__)
    for (; c <= channels - ARENITE_MEAN_CHANNELS; c += ARENITE_MEAN_CHANNELS) {
        for (int32_t i = 0; first && i < ARENITE_MEAN_CHANNELS; i++) {
            sums[c + i] = 0;
        }
        for (int32_t x = 0; x < width; x += ARENITE_MEAN_PIXELS) {
            const int32_t pixels = width - x < ARENITE_MEAN_PIXELS ? width - x : ARENITE_MEAN_PIXELS;
            arenite_sum_pixels(row + (ptrdiff_t)x * channels + c, pixels, channels, sums + c);
        }
    }
#endif
    for (; c < channels; c++) {
        const int8_t *in = row + c;
        int32_t sum = first ? 0 : sums[c];
        for (int32_t x = 0; x < width; x++, in += channels) {
            sum += *in;
        }
        sums[c] = sum;
    }
}

#endif
