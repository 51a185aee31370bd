/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_host_isa.h"

#define UNKNOWN (-1)

static int32_t in_use = UNKNOWN;

#if defined(__x86_64__)
#include <cpuid.h>

/* __builtin_cpu_supports would do, but needs a support library that not every compiler brings. */
#define BIT(word, bit) (((word) >> (bit)) & 1u)
#define XMM_YMM 0x06u
#define XMM_YMM_ZMM 0xE6u

static uint32_t saved_state(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has_avx512(uint32_t b, uint32_t c) {
    const int foundation = BIT(b, 16) && BIT(b, 17) && BIT(b, 30) && BIT(b, 31); /* F, DQ, BW, VL */
    const int bytes = BIT(c, 1) && BIT(c, 11);                                   /* VBMI, VNNI */
    return foundation && bytes && (saved_state() & XMM_YMM_ZMM) == XMM_YMM_ZMM;
}

static int has_avxvnni(void) {
    uint32_t a, b, c, d;
    return ARENITE_KNOWS_AVXVNNI && __get_cpuid_count(7, 1, &a, &b, &c, &d) && BIT(a, 4);
}

/* The best level up to `limit`. */
static int32_t best(int32_t limit) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !BIT(c, 27)) {
        return ARENITE_ISA_PLAIN; /* the system saves no vector registers */
    }
    const int has_avx2 = __get_cpuid_count(7, 0, &a, &b, &c, &d) && BIT(b, 5);
    if (limit < ARENITE_ISA_AVX2 || !has_avx2 || (saved_state() & XMM_YMM) != XMM_YMM) {
        return ARENITE_ISA_PLAIN;
    }
    if (limit >= ARENITE_ISA_AVX512 && has_avx512(b, c)) {
        return ARENITE_ISA_AVX512;
    }
    return limit >= ARENITE_ISA_AVXVNNI && has_avxvnni() ? ARENITE_ISA_AVXVNNI : ARENITE_ISA_AVX2;
}
#elif defined(__aarch64__)
static int32_t best(int32_t limit) { return limit < ARENITE_ISA_NEON ? ARENITE_ISA_PLAIN : ARENITE_ISA_NEON; }
#else
static int32_t best(int32_t limit) {
    (void)limit;
    return ARENITE_ISA_PLAIN;
}
#endif

int32_t arenite_host_isa(void) {
    if (in_use == UNKNOWN) {
        in_use = best(INT32_MAX); /* threads that race here write the same */
    }
    return in_use;
}

int32_t arenite_host_cap_isa(int32_t level) {
    in_use = best(level);
    return in_use;
}
