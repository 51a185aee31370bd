/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-point arithmetic of arenite_fixed_point.h on 8 lanes of AVX2. */
#ifndef ARENITE_AVX2_H
#define ARENITE_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define ARENITE_AVX2 __attribute__((target("avx2")))
#define ARENITE_AVX2_INLINE static inline __attribute__((always_inline)) ARENITE_AVX2

/* arenite_doubling_high_mul in each lane. The products of even lanes keep their bits 31 .. 62 below, those of odd lanes
 * above. */
ARENITE_AVX2_INLINE __m256i arenite_high_mul_avx2(__m256i a, __m256i b) {
    const __m256i half = _mm256_set1_epi64x((int64_t)1 << 30);
    const __m256i low = _mm256_add_epi64(_mm256_mul_epi32(a, b), half);
    const __m256i high =
        _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32)), half);
    return _mm256_blend_epi32(_mm256_srli_epi64(low, 31), _mm256_slli_epi64(high, 1), 0xAA);
}

/* arenite_rounding_shift_right in each lane. */
ARENITE_AVX2_INLINE __m256i arenite_shift_right_avx2(__m256i value, __m256i right) {
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i moved = _mm256_add_epi32(value, _mm256_srai_epi32(value, 31));
    const __m256i twice = _mm256_add_epi32(_mm256_srav_epi32(moved, _mm256_sub_epi32(right, one)), one);
    const __m256i is_zero = _mm256_cmpeq_epi32(right, _mm256_setzero_si256());
    return _mm256_blendv_epi8(_mm256_srai_epi32(twice, 1), value, is_zero);
}

/* Accumulators of 8 channels to output values, zero point added, not clamped yet. */
ARENITE_AVX2_INLINE __m256i arenite_requantise_avx2(__m256i acc, const int32_t *multiplier,
                                                    const int8_t *shift, int32_t zero_point) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i factor = _mm256_loadu_si256((const __m256i *)(const void *)multiplier);
    const __m256i shifts = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)shift));
    const __m256i left = _mm256_max_epi32(shifts, zero);
    const __m256i right = _mm256_sub_epi32(zero, _mm256_min_epi32(shifts, zero));
    const __m256i high = arenite_high_mul_avx2(_mm256_sllv_epi32(acc, left), factor);
    return _mm256_add_epi32(arenite_shift_right_avx2(high, right), _mm256_set1_epi32(zero_point));
}

/* The first `count` of 16 values, clamped. */
ARENITE_AVX2_INLINE void arenite_store_avx2(int8_t *out, __m256i first, __m256i second, int32_t count,
                                            int32_t low, int32_t high) {
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xD8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    const __m128i clamped =
        _mm_min_epi8(_mm_max_epi8(bytes, _mm_set1_epi8((int8_t)low)), _mm_set1_epi8((int8_t)high));
    if (count >= 16) {
        _mm_storeu_si128((__m128i *)(void *)out, clamped);
    } else {
        int8_t all[16];
        _mm_storeu_si128((__m128i *)(void *)all, clamped);
        for (int32_t i = 0; i < count; i++) {
            out[i] = all[i];
        }
    }
}

/* Sums of neighbouring lanes: of four vectors [4 channels][2] the 16 channels in order. */
ARENITE_AVX2_INLINE void arenite_add_pairs_avx2(const __m256i *sums, __m256i *first, __m256i *second) {
    *first = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[0], sums[1]), 0xD8);
    *second = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[2], sums[3]), 0xD8);
}

/* Pairs of accumulators of 16 channels, as arenite_add_pairs_avx2 takes them, to the first `count` output bytes. */
ARENITE_AVX2_INLINE void arenite_finish_avx2(const __m256i *sums, const int32_t *bias,
                                             const int32_t *multiplier, const int8_t *shift,
                                             int32_t zero_point, int8_t *out, int32_t count, int32_t low,
                                             int32_t high) {
    __m256i half[2];
    arenite_add_pairs_avx2(sums, &half[0], &half[1]);
    for (int i = 0; i < 2; i++) {
        const __m256i start = _mm256_loadu_si256((const __m256i *)(const void *)(bias + 8 * i));
        half[i] = arenite_requantise_avx2(_mm256_add_epi32(half[i], start), multiplier + 8 * i, shift + 8 * i,
                                          zero_point);
    }
    arenite_store_avx2(out, half[0], half[1], count, low, high);
}

#endif
