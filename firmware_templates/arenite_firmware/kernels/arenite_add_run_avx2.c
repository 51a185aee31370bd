/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_run.h"

#if defined(__x86_64__)
#include "arenite_avx2.h"

#define LANES 16

ARENITE_AVX2_INLINE __m256i to_shared_grid(const int8_t *bytes, int32_t zero_point, int32_t multiplier,
                                           int32_t right_shift) {
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
    const __m256i value =
        _mm256_slli_epi32(_mm256_sub_epi32(wide, _mm256_set1_epi32(zero_point)), ARENITE_ADD_S8_LEFT_SHIFT);
    return arenite_shift_right_avx2(arenite_high_mul_avx2(value, _mm256_set1_epi32(multiplier)),
                                    _mm256_set1_epi32(right_shift));
}

/* 8 sums as output values, not clamped yet. */
ARENITE_AVX2_INLINE __m256i add_8(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b) {
    const __m256i sum =
        _mm256_add_epi32(to_shared_grid(a, p->a_zero_point, p->a_multiplier, p->a_right_shift),
                         to_shared_grid(b, p->b_zero_point, p->b_multiplier, p->b_right_shift));
    const __m256i high = arenite_high_mul_avx2(sum, _mm256_set1_epi32(p->out_multiplier));
    return _mm256_add_epi32(arenite_shift_right_avx2(high, _mm256_set1_epi32(p->out_right_shift)),
                            _mm256_set1_epi32(p->out_zero_point));
}

ARENITE_AVX2 int32_t arenite_add_run_avx2(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b,
                                          int8_t *out, int32_t count) {
    int32_t i = 0;
    for (; i <= count - LANES; i += LANES) {
        arenite_store_avx2(out + i, add_8(p, a + i, b + i), add_8(p, a + i + 8, b + i + 8), LANES, p->act_min,
                           p->act_max);
    }
    return i;
}
#endif
