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

static int32_t best(void) {
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !BIT(c, 27)) {
        return ARENITE_ISA_PLAIN; /* the system saves no vector registers */
    }
    const uint32_t state = saved_state();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !BIT(b, 5) || (state & XMM_YMM) != XMM_YMM) {
        return ARENITE_ISA_PLAIN;
    }
    const int foundation = BIT(b, 16) && BIT(b, 17) && BIT(b, 30) && BIT(b, 31); /* F, DQ, BW, VL */
    const int bytes = BIT(c, 1) && BIT(c, 11);                                   /* VBMI, VNNI */
    return foundation && bytes && (state & XMM_YMM_ZMM) == XMM_YMM_ZMM ? ARENITE_ISA_AVX512
                                                                       : ARENITE_ISA_AVX2;
}
#elif defined(__aarch64__)
static int32_t best(void) { return ARENITE_ISA_NEON; }
#else
static int32_t best(void) { return ARENITE_ISA_PLAIN; }
#endif

int32_t arenite_host_isa(void) {
    if (in_use == UNKNOWN) {
        in_use = best(); /* threads that race here write the same */
    }
    return in_use;
}

int32_t arenite_host_cap_isa(int32_t level) {
    const int32_t limit = best();
    in_use = level < limit ? level : limit;
    return in_use;
}
