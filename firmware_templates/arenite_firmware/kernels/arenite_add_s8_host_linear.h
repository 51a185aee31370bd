/* SPDX-License-Identifier: Apache-2.0 */
/* ADD for computers where the reference's three roundings are one: a linear function of both bytes, rounded down.
 * Authority: TFLM reference_integer_ops::Add. The code generator has compared all 65536 pairs of bytes with it.
 *
 * The parameters of arenite_add_s8, but for
 *   a_multiplier, b_multiplier, out_multiplier, out_right_shift
 * which give the sum of two bytes as (a * a_multiplier + b * b_multiplier + out_multiplier) >> out_right_shift, zero points
 * included, before it is clamped. No pair's sum leaves 32 bits. Neither side is broadcast over channels. */
#ifndef ARENITE_ADD_S8_HOST_LINEAR_H
#define ARENITE_ADD_S8_HOST_LINEAR_H

#include "arenite_add_s8.h"

/* rows, out: as arenite_add_s8. */
void arenite_add_s8_host_linear(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                int32_t *scratch);

#endif
