/* SPDX-License-Identifier: Apache-2.0 */
/* CONV_2D and FULLY_CONNECTED for computers, few or odd channels; see arenite_conv_2d_s8_host.h.
 * Authority: TFLM reference_integer_ops::ConvPerChannel and FullyConnected (double rounding). */
#ifndef ARENITE_CONV_2D_S8_HOST_RUNS_H
#define ARENITE_CONV_2D_S8_HOST_RUNS_H

#include "arenite_conv_2d_s8_host.h"

/* rows, out: as arenite_conv_2d_s8. No scratch. */
void arenite_conv_2d_s8_host_runs(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                                  int32_t *scratch);

#endif
