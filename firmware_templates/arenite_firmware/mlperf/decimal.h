/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal text of numbers, exact, without a C library. */
#ifndef ARENITE_DECIMAL_H
#define ARENITE_DECIMAL_H

#include <stdint.h>

/* Room for the longest text of either function, the final zero included. */
#define DECIMAL_MAX_BYTES 24u

/* `value` in decimal; returns `to`. */
char *decimal_u64(char *to, uint64_t value);

/* `value` with three digits after the point, as "%.3f" of C prints it: the exact value rounded to nearest, ties to even.
 * Infinities and what is not a number are `inf`, `-inf` and `nan`; a magnitude above 2^53 prints as 2^53. Returns `to`. */
char *decimal_milli(char *to, float value);

#endif
