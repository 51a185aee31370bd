/* SPDX-License-Identifier: Apache-2.0 */
/* ADD with the DSP extension. Authority: TFLM reference_integer_ops::Add.
 *
 * The same parameters as arenite_add_s8, of sides that are not broadcast over channels. One side has the greater scale, so
 * its multiplier is 2^30 and its shift 0; the other is shifted by 1 .. 21, the sum by 1 .. 21. */
#ifndef ARENITE_ADD_S8_DSP_H
#define ARENITE_ADD_S8_DSP_H

#include "arenite_add_s8.h"

/* rows, out: as arenite_add_s8. */
void arenite_add_s8_dsp(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                        int32_t *scratch);

#endif
