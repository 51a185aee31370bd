/* SPDX-License-Identifier: Apache-2.0 */
/* SUB, int8, one output row a call, with broadcasts over pixels and channels. The struct is that of ADD.
 * Authority: TFLM reference_ops::Sub: both sides on the shared grid of 2^-20 as for ADD, subtracted there, rounded once. */
#ifndef ARENITE_SUB_S8_H
#define ARENITE_SUB_S8_H

#include <stdint.h>

#include "arenite_add_s8.h"

typedef arenite_add_s8_t arenite_sub_s8_t;

/* rows: one row of each side. out: width * channels bytes; it may start at or before a side that is not broadcast. */
void arenite_sub_s8(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                    int32_t *scratch);

#endif
