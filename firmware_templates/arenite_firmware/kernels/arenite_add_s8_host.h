/* SPDX-License-Identifier: Apache-2.0 */
/* ADD as arenite_add_s8 computes it, for computers: vector instructions found at run time.
 * Authority: TFLM reference_integer_ops::Add.
 *
 * The same parameters; neither side is broadcast over channels: a_channel_step and b_channel_step are 1. */
#ifndef ARENITE_ADD_S8_HOST_H
#define ARENITE_ADD_S8_HOST_H

#include "arenite_add_s8.h"

/* rows, out: as arenite_add_s8. */
void arenite_add_s8_host(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                         int32_t *scratch);

#endif
