/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_lookup_s8_mve.h"

#if defined(__ARM_FEATURE_MVE)

void arenite_lookup_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                           int32_t *scratch) {
    const arenite_lookup_s8_t *p = (const arenite_lookup_s8_t *)params;
    const int8_t *in = rows[0];
    register int32_t left __asm__("lr") = p->count;
    (void)step;
    (void)scratch;
    /* 16 bytes are read before any is written, as out may be where they are. */
    __asm__ volatile("wlstp.8 lr, lr, 2f\n"
                     "1:\n\t"
                     "vldrb.8 q0, [%[in]], #16\n\t"
                     "vldrb.u8 q1, [%[table], q0]\n\t"
                     "vstrb.8 q1, [%[out]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [in] "+r"(in), [out] "+r"(out), "+r"(left)
                     : [table] "r"(p->table)
                     : "q0", "q1", "memory");
}

#endif
