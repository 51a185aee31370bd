/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_resize_host.h"

#include <stddef.h>

#include "arenite_host_isa.h"

#define WEIGHT_BITS 22
#define HALF ((int32_t)1 << (WEIGHT_BITS - 1))
#define RUN (ARENITE_PIXEL * ARENITE_TAPS) /* bytes that are multiplied at once */

/* A run of bytes as sums of int32, in the vectors of each architecture. */
#if defined(__x86_64__)
#include <immintrin.h>

#define VECTORS __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))

typedef __m256i run_sums_t;

INLINE run_sums_t run_of(int32_t value) { return _mm256_set1_epi32(value); }

INLINE run_sums_t weights_of(const int32_t *weights) {
    return _mm256_loadu_si256((const __m256i *)(const void *)weights);
}

INLINE run_sums_t add_run(run_sums_t sums, const uint8_t *in, run_sums_t weights) {
    const __m256i run = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)in));
    return _mm256_add_epi32(sums, _mm256_mullo_epi32(run, weights));
}

/* Packing saturates, which is the clipping. */
INLINE __m128i rounded(__m128i low, __m128i high) {
    const __m128i words =
        _mm_packs_epi32(_mm_srai_epi32(low, WEIGHT_BITS), _mm_srai_epi32(high, WEIGHT_BITS));
    return _mm_packus_epi16(words, words);
}

INLINE void write_run(run_sums_t sums, uint8_t *out) {
    const __m128i run = rounded(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    _mm_storel_epi64((__m128i *)(void *)out, run);
}

/* Of two taps of a pixel. */
INLINE void write_pixel(run_sums_t sums, uint8_t *out) {
    const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    const int32_t pixel = _mm_cvtsi128_si32(rounded(both, both));
    __builtin_memcpy(out, &pixel, sizeof pixel);
}
#elif defined(__aarch64__)
#include <arm_neon.h>

#define VECTORS
#define INLINE static inline __attribute__((always_inline))

typedef int32x4x2_t run_sums_t;

INLINE run_sums_t run_of(int32_t value) { return (run_sums_t){{vdupq_n_s32(value), vdupq_n_s32(value)}}; }

INLINE run_sums_t weights_of(const int32_t *weights) {
    return (run_sums_t){{vld1q_s32(weights), vld1q_s32(weights + 4)}};
}

INLINE run_sums_t add_run(run_sums_t sums, const uint8_t *in, run_sums_t weights) {
    const int16x8_t run = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(in)));
    sums.val[0] = vmlaq_s32(sums.val[0], vmovl_s16(vget_low_s16(run)), weights.val[0]);
    sums.val[1] = vmlaq_s32(sums.val[1], vmovl_s16(vget_high_s16(run)), weights.val[1]);
    return sums;
}

INLINE uint8x8_t rounded(int32x4_t low, int32x4_t high) {
    const int16x4_t words = vqmovn_s32(vshrq_n_s32(low, WEIGHT_BITS));
    return vqmovun_s16(vcombine_s16(words, vqmovn_s32(vshrq_n_s32(high, WEIGHT_BITS))));
}

INLINE void write_run(run_sums_t sums, uint8_t *out) { vst1_u8(out, rounded(sums.val[0], sums.val[1])); }

INLINE void write_pixel(run_sums_t sums, uint8_t *out) {
    const int32x4_t both = vaddq_s32(sums.val[0], sums.val[1]);
    const uint32_t pixel = vget_lane_u32(vreinterpret_u32_u8(rounded(both, both)), 0);
    __builtin_memcpy(out, &pixel, sizeof pixel);
}
#endif

#if defined(VECTORS)
int32_t arenite_resize_runs_here(void) { return arenite_host_isa() != ARENITE_ISA_PLAIN; }

INLINE void row_of_columns(const arenite_axis_t *axis, const uint8_t *in, uint8_t *out) {
    const int32_t *weights = axis->weights;
    for (uint32_t x = 0; x < axis->count; x++, out += ARENITE_PIXEL) {
        const uint8_t *taps = in + axis->first[x] * ARENITE_PIXEL;
        run_sums_t sums = run_of(HALF / ARENITE_TAPS);
        for (uint32_t k = 0; k < axis->taps; k += ARENITE_TAPS, taps += RUN, weights += RUN) {
            sums = add_run(sums, taps, weights_of(weights));
        }
        write_pixel(sums, out);
    }
}

VECTORS void arenite_resize_columns(const arenite_axis_t *axis, const uint8_t *in, uint32_t stride_bytes,
                                    uint32_t rows, uint8_t *out) {
    for (uint32_t y = 0; y < rows; y++, in += stride_bytes, out += axis->count * ARENITE_PIXEL) {
        row_of_columns(axis, in, out);
    }
}

INLINE run_sums_t sums_of_rows(const uint8_t *in, uint32_t stride_bytes, const int32_t *weights,
                               uint32_t taps) {
    run_sums_t sums = run_of(HALF);
    for (uint32_t k = 0; k < taps; k++, in += stride_bytes) {
        sums = add_run(sums, in, run_of(weights[k]));
    }
    return sums;
}

/* A pixel that is left behind the last run: with as many zeros it is one. */
INLINE void last_pixel(const uint8_t *in, uint32_t stride_bytes, const int32_t *weights, uint32_t taps,
                       uint8_t *out) {
    uint8_t run[RUN] = {0};
    run_sums_t sums = run_of(HALF);
    for (uint32_t k = 0; k < taps; k++, in += stride_bytes) {
        __builtin_memcpy(run, in, ARENITE_PIXEL);
        sums = add_run(sums, run, run_of(weights[k]));
    }
    write_run(sums, run);
    __builtin_memcpy(out, run, ARENITE_PIXEL);
}

VECTORS void arenite_resize_rows(const arenite_axis_t *axis, const uint8_t *in, uint32_t stride_bytes,
                                 uint32_t row_bytes, uint8_t *out) {
    const int32_t *weights = axis->weights;
    for (uint32_t y = 0; y < axis->count; y++, weights += axis->taps, out += row_bytes) {
        const uint8_t *first = in + (size_t)axis->first[y] * stride_bytes;
        uint32_t i = 0;
        for (; i + RUN <= row_bytes; i += RUN) {
            write_run(sums_of_rows(first + i, stride_bytes, weights, axis->taps), out + i);
        }
        if (i < row_bytes) {
            last_pixel(first + i, stride_bytes, weights, axis->taps, out + i);
        }
    }
}
#else
int32_t arenite_resize_runs_here(void) { return 0; }
#endif

void arenite_write_bytes(const arenite_bytes_t *how, const uint8_t *pixels, uint32_t count, uint8_t *input) {
    for (uint32_t c = 0; c < 3; c++) {
        const uint8_t *from = pixels + how->source[c], *table = how->table + 256 * c;
        uint8_t *to = input + c * how->channel_step;
        for (uint32_t i = 0; i < count; i++, from += ARENITE_PIXEL, to += how->pixel_step) {
            *to = table[*from];
        }
    }
}
