/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions the kernels for computers may use. A library is built once and runs on every processor of its
 * architecture: kernels ask here at run time. */
#ifndef ARENITE_HOST_ISA_H
#define ARENITE_HOST_ISA_H

#include <stdint.h>

/* In order of speed. Each level computes the same bytes. */
#define ARENITE_ISA_PLAIN 0  /* C */
#define ARENITE_ISA_AVX2 1   /* x86-64 with AVX2 */
#define ARENITE_ISA_AVX512 2 /* x86-64 with AVX-512 F, BW, DQ, VL, VBMI and VNNI */
#define ARENITE_ISA_NEON 1   /* any AArch64; dot products where the compiler was told of them */

/* The level in use: the best of this processor, unless it was capped. */
int32_t arenite_host_isa(void);

/* Use at most `level` from now on, also from 0 back up. Not while a model runs. Returns the level in use. */
int32_t arenite_host_cap_isa(int32_t level);

#endif
