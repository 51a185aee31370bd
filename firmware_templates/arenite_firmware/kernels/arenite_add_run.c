/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_add_run.h"

#include "arenite_host_isa.h"

static int32_t vectors(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                       int32_t count) {
#if defined(__x86_64__)
    const int32_t isa = arenite_host_isa();
    if (isa == ARENITE_ISA_AVX512) {
        return arenite_add_run_avx512(p, a, b, out, count);
    }
    if (isa >= ARENITE_ISA_AVX2) {
        return arenite_add_run_avx2(p, a, b, out, count);
    }
#else
    (void)p, (void)a, (void)b, (void)out, (void)count;
#endif
    return 0;
}

void arenite_add_run(const arenite_add_s8_t *p, const int8_t *a, const int8_t *b, int8_t *out,
                     int32_t count) {
    for (int32_t i = vectors(p, a, b, out, count); i < count; i++) {
        out[i] = arenite_add_s8_byte(p, a[i], b[i]);
    }
}
