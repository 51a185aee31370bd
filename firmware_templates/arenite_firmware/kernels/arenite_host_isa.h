/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions the kernels for computers may use. A library is built once and runs on every processor of its
 * architecture: kernels ask here at run time. */
#ifndef ARENITE_HOST_ISA_H
#define ARENITE_HOST_ISA_H

#include <stdint.h>

/* In order of speed. Each level computes the same bytes. A processor may lack a level below its best. */
#define ARENITE_ISA_PLAIN 0   /* C */
#define ARENITE_ISA_AVX2 1    /* x86-64 with AVX2 */
#define ARENITE_ISA_AVXVNNI 2 /* and AVX-VNNI */
#define ARENITE_ISA_AVX512 3  /* x86-64 with AVX2 and AVX-512 F, BW, DQ, VL, VBMI and VNNI */
#define ARENITE_ISA_NEON 1    /* any AArch64; dot products where the compiler was told of them */

/* GCC before 11 and Clang before 12 know no AVX-VNNI: what they build goes without. */
#if defined(__clang__)
#define ARENITE_KNOWS_AVXVNNI (__clang_major__ >= 12)
#else
#define ARENITE_KNOWS_AVXVNNI (__GNUC__ >= 11)
#endif

/* The level in use: the best of this processor, unless it was capped. */
int32_t arenite_host_isa(void);

/* Use the best level up to `level` that this processor has from now on, also from 0 back up. Not while a model runs.
 * Returns the level in use. */
int32_t arenite_host_cap_isa(int32_t level);

#endif
