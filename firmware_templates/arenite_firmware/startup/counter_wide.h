/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit counter out of a 32-bit one that counts up, without an interrupt: it must be read more often than it wraps.
 * The application reads it before every step of a run. */
#ifndef ARENITE_COUNTER_WIDE_H
#define ARENITE_COUNTER_WIDE_H

#include <stdint.h>

/* `now` is what the 32-bit counter says. One caller at a time. */
static inline uint64_t counter_widened(uint32_t now) {
    static uint32_t last;
    static uint32_t wraps;
    if (now < last) {
        wraps++;
    }
    last = now;
    return (uint64_t)wraps << 32 | now;
}

#endif
