/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a row by their type, for kernels that serve several. */
#ifndef ARENITE_ELEMENT_H
#define ARENITE_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

/* As the dtype codes of arenite_io_t. */
enum { ARENITE_S8, ARENITE_U8, ARENITE_S16, ARENITE_S32, ARENITE_F32, ARENITE_BOOL };

/* Element i of a row of integers. */
static inline int32_t arenite_load_int(const int8_t *row, int32_t type, int32_t i) {
    const void *at = row;
    switch (type) {
    case ARENITE_S8:
        return ((const int8_t *)at)[i];
    case ARENITE_S16:
        return ((const int16_t *)at)[i];
    case ARENITE_S32:
        return ((const int32_t *)at)[i];
    default:
        return ((const uint8_t *)at)[i];
    }
}

/* The value is within the type's range. */
static inline void arenite_store_int(int8_t *row, int32_t type, int32_t i, int32_t value) {
    void *at = row;
    switch (type) {
    case ARENITE_S8:
        ((int8_t *)at)[i] = (int8_t)value;
        break;
    case ARENITE_S16:
        ((int16_t *)at)[i] = (int16_t)value;
        break;
    case ARENITE_S32:
        ((int32_t *)at)[i] = value;
        break;
    default:
        ((uint8_t *)at)[i] = (uint8_t)value;
        break;
    }
}

#endif
