/* SPDX-License-Identifier: Apache-2.0 */
#include "arenite_real.h"

#include <float.h>

#define LN2 0.69314718055994530942
#define TERMS 13 /* 0.35^14 / 14! is below 2^-57 */
#define ROOT2 1.41421356237309504880
#define LOG_TERMS 21 /* 0.1716^23 / 23 is below 2^-62 */

/* 2^n, n from -1022 to 1023. */
static double power_of_two(int32_t n) {
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* exp(x), |x| below 700. */
static double exponential(double x) {
    const int32_t n = (int32_t)(x / LN2 + (x < 0 ? -0.5 : 0.5));
    const double r = x - n * LN2;
    double sum = 1.0;
    for (int32_t i = TERMS; i > 0; i--) {
        sum = 1.0 + sum * r / i;
    }
    return sum * power_of_two(n);
}

float arenite_exp(float x) {
    if (!(x > -104.0f)) {
        return 0.0f;
    }
    return x > 88.7f ? FLT_MAX : (float)exponential(x);
}

/* Below 1/16 the quotient would cancel: there the series of tanh is shorter. */
float arenite_tanh(float x) {
    const double a = x;
    if (x > 10.0f || x < -10.0f) {
        return x > 0 ? 1.0f : -1.0f;
    }
    if (x > -0.0625f && x < 0.0625f) {
        const double s = a * a;
        return (float)(a * (1.0 + s * (-1.0 / 3 + s * (2.0 / 15 + s * (-17.0 / 315 + s * 62.0 / 2835)))));
    }
    const double e = exponential(2.0 * a);
    return (float)((e - 1.0) / (e + 1.0));
}

/* x = 2^n * m with m from sqrt(1/2) to sqrt(2), ln(m) = 2 artanh((m - 1) / (m + 1)) by its series. */
float arenite_log(float x) {
    double m = x;
    uint64_t bits;
    __builtin_memcpy(&bits, &m, sizeof bits);
    int32_t n = (int32_t)(bits >> 52) - 1023;
    m /= power_of_two(n);
    if (m > ROOT2) {
        m *= 0.5;
        n++;
    }
    const double s = (m - 1.0) / (m + 1.0);
    double sum = 0.0;
    for (int32_t i = LOG_TERMS; i > 0; i -= 2) {
        sum = sum * s * s + 1.0 / i;
    }
    return (float)(n * LN2 + 2.0 * s * sum);
}
