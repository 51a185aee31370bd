/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_linear.h"

#if defined(__x86_64__)
#include "arenite_avx2.h"

#define LANES 16

typedef struct {
    __m256i a;
    __m256i b;
    __m256i offset;
    __m128i right;
} linear_t;

ARENITE_AVX2_INLINE __m256i widen(const int8_t *bytes) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
}

/* 8 sums, not clamped. */
ARENITE_AVX2_INLINE __m256i add(const linear_t *l, const int8_t *a, const int8_t *b) {
    const __m256i of_b = _mm256_add_epi32(_mm256_mullo_epi32(widen(b), l->b), l->offset);
    return _mm256_sra_epi32(_mm256_add_epi32(_mm256_mullo_epi32(widen(a), l->a), of_b), l->right);
}

ARENITE_AVX2 int32_t arenite_add_linear_avx2(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b,
                                             int8_t *out, int32_t count) {
    const linear_t l = {_mm256_set1_epi32(p->a_multiplier), _mm256_set1_epi32(p->b_multiplier),
                        _mm256_set1_epi32(p->out_multiplier), _mm_cvtsi32_si128(p->out_right_shift)};
    const __m128i low = _mm_set1_epi8((int8_t)p->act_min), high = _mm_set1_epi8((int8_t)p->act_max);
    int32_t i = 0;
    for (; i <= count - LANES; i += LANES) {
        const __m256i first = add(&l, a + i, b + i);
        const __m256i second = add(&l, a + i + ARENITE_HALF, b + i + ARENITE_HALF);
        _mm_storeu_si128((__m128i *)(void *)(out + i), arenite_bytes_avx2(first, second, low, high));
    }
    return i;
}
#endif
