/* SPDX-License-Identifier: Apache-2.0 */
/* Any operator of one byte in, one byte out, as arenite_lookup_s8 computes it, for processors with MVE (Helium).
 * Authority: what the table was made of, see arenite_lookup_s8.h. */
#ifndef ARENITE_LOOKUP_S8_MVE_H
#define ARENITE_LOOKUP_S8_MVE_H

#include "arenite_lookup_s8.h"

/* rows, out: as arenite_lookup_s8. No scratch. */
void arenite_lookup_s8_mve(const void *params, const int8_t *const *rows, int8_t *out, int32_t step,
                           int32_t *scratch);

#endif
