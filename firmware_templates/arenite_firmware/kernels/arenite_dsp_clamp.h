/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels with the DSP extension share: SSAT leaves bytes, a fused activation may want fewer values. */
#ifndef ARENITE_DSP_CLAMP_H
#define ARENITE_DSP_CLAMP_H

#include <stdint.h>

/* Clamps `count` bytes of a finished row to low .. high, both within int8. */
void arenite_dsp_clamp(int8_t *out, int32_t count, int32_t low, int32_t high);

#endif
