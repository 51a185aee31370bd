/* SPDX-License-Identifier: Apache-2.0 */
/* ADD as arenite_add_s8 computes it, for processors with MVE (Helium).
 * Authority: TFLM reference_integer_ops::Add.
 *
 * No side is broadcast over channels. A side with right shift 0 has the multiplier 2^30 or 0, and one side has 2^30 and
 * 0, as the side of the larger scale always has: it is only halved. out_right_shift is 1 .. 31. */
#ifndef ARENITE_ADD_S8_MVE_H
#define ARENITE_ADD_S8_MVE_H

#include "arenite_add_s8.h"

/* rows, out: as arenite_add_s8. No scratch. */
void arenite_add_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch);

#endif
