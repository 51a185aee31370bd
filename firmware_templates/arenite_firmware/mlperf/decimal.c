/* SPDX-License-Identifier: Apache-2.0 */
#include "decimal.h"

#include <string.h>

#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#define EXPONENT_SPECIAL 255
#define MOST_SHIFT 29 /* 2^24 << 29 is 2^53; times 1000 it still fits 64 bits */

char *decimal_u64(char *to, uint64_t value) {
    char digits[DECIMAL_MAX_BYTES];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + (char)(value % 10u));
        value /= 10u;
    } while (value != 0);
    for (uint32_t i = 0; i < count; i++) {
        to[i] = digits[count - 1u - i];
    }
    to[count] = '\0';
    return to;
}

/* mantissa * 2^exponent in thousandths, to nearest, ties to even. */
static uint64_t thousandths(uint32_t mantissa, int exponent) {
    const uint64_t scaled = (uint64_t)mantissa * 1000u; /* below 2^34 */
    if (exponent >= 0) {
        return exponent > MOST_SHIFT ? (uint64_t)1000u << 53 : scaled << exponent;
    }
    if (exponent < -40) {
        return 0; /* below half a thousandth by far */
    }
    const unsigned shift = (unsigned)-exponent;
    const uint64_t whole = scaled >> shift;
    const uint64_t rest = scaled - (whole << shift);
    const uint64_t half = (uint64_t)1u << (shift - 1u);
    return whole + (rest > half || (rest == half && (whole & 1u) != 0) ? 1u : 0u);
}

char *decimal_milli(char *to, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> MANTISSA_BITS & 0xFFu);
    const uint32_t fraction = bits & ((1u << MANTISSA_BITS) - 1u);
    char *at = to;
    if (exponent == EXPONENT_SPECIAL && fraction != 0) {
        memcpy(to, "nan", 4);
        return to;
    }
    if ((bits >> 31) != 0) {
        *at++ = '-';
    }
    if (exponent == EXPONENT_SPECIAL) {
        memcpy(at, "inf", 4);
        return to;
    }
    const uint32_t mantissa = exponent == 0 ? fraction : fraction | 1u << MANTISSA_BITS;
    const uint64_t milli =
        thousandths(mantissa, (exponent == 0 ? 1 : exponent) - EXPONENT_BIAS - MANTISSA_BITS);
    decimal_u64(at, milli / 1000u);
    while (*at != '\0') {
        at++;
    }
    const uint32_t rest = (uint32_t)(milli % 1000u);
    at[0] = '.';
    at[1] = (char)('0' + (char)(rest / 100u));
    at[2] = (char)('0' + (char)(rest / 10u % 10u));
    at[3] = (char)('0' + (char)(rest % 10u));
    at[4] = '\0';
    return to;
}
