/* SPDX-License-Identifier: Apache-2.0 */
#include "ed25519.h"

#include <string.h>

#include "bytes.h"
#include "sha512.h"

#define WORDS 8
#define FOLD 38u /* 2^256 modulo 2^255 - 19 */

/* A number modulo p = 2^255 - 19 in 32-bit words, least first; any value below 2^256. */
typedef uint32_t field_t[WORDS];

/* A point (X/Z, Y/Z) of the curve -x^2 + y^2 = 1 + d x^2 y^2, with T = XY/Z. */
typedef struct {
    field_t x, y, z, t;
} point_t;

static const field_t prime = {0xFFFFFFEDu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu,
                              0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0x7FFFFFFFu};
/* Number of points in the group of the base point. */
static const uint32_t order[WORDS] = {0x5CF5D3EDu, 0x5812631Au, 0xA2F79CD6u, 0x14DEF9DEu,
                                      0,           0,           0,           0x10000000u};
static const field_t curve_d = {0x135978A3u, 0x75EB4DCAu, 0x4141D8ABu, 0x00700A4Du,
                                0x7779E898u, 0x8CC74079u, 0x2B6FFE73u, 0x52036CEEu};
static const field_t twice_d = {0x26B2F159u, 0xEBD69B94u, 0x8283B156u, 0x00E0149Au,
                                0xEEF3D130u, 0x198E80F2u, 0x56DFFCE7u, 0x2406D9DCu};
static const field_t root_of_minus_1 = {0x4A0EA0B0u, 0xC4EE1B27u, 0xAD2FE478u, 0x2F431806u,
                                        0x3DFBD7A7u, 0x2B4D0099u, 0x4FC1DF0Bu, 0x2B832480u};
static const field_t one = {1u, 0, 0, 0, 0, 0, 0, 0};
static const point_t base = {
    {0x8F25D51Au, 0xC9562D60u, 0x9525A7B2u, 0x692CC760u, 0xFDD6DC5Cu, 0xC0A4E231u, 0xCD6E53FEu, 0x216936D3u},
    {0x66666658u, 0x66666666u, 0x66666666u, 0x66666666u, 0x66666666u, 0x66666666u, 0x66666666u, 0x66666666u},
    {1u, 0, 0, 0, 0, 0, 0, 0},
    {0xA5B7DDA3u, 0x6DDE8AB3u, 0x775152F5u, 0x20F09F80u, 0x64ABE37Du, 0x66EA4E8Eu, 0xD78B7665u, 0x67875F0Fu},
};

/* r += small; what passes 2^256 comes back folded. */
static void add_small(uint32_t r[WORDS], uint32_t small) {
    uint64_t carry = small;
    while (carry != 0) {
        for (int i = 0; i < WORDS && carry != 0; i++) {
            carry += r[i];
            r[i] = (uint32_t)(carry & 0xFFFFFFFFu);
            carry >>= 32;
        }
        carry *= FOLD;
    }
}

static void subtract_small(uint32_t r[WORDS], uint32_t small) {
    uint32_t borrow = small;
    while (borrow != 0) {
        for (int i = 0; i < WORDS && borrow != 0; i++) {
            const uint32_t before = r[i];
            r[i] = before - borrow;
            borrow = before < borrow ? 1u : 0u;
        }
        borrow *= FOLD;
    }
}

static void add(field_t r, const field_t a, const field_t b) {
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)a[i] + b[i];
        r[i] = (uint32_t)(carry & 0xFFFFFFFFu);
        carry >>= 32;
    }
    add_small(r, (uint32_t)carry * FOLD);
}

/* Plain difference of 256-bit numbers; returns the borrow. */
static uint32_t difference(uint32_t r[WORDS], const uint32_t a[WORDS], const uint32_t b[WORDS]) {
    uint32_t borrow = 0;
    for (int i = 0; i < WORDS; i++) {
        const uint64_t step = (uint64_t)a[i] - b[i] - borrow;
        r[i] = (uint32_t)(step & 0xFFFFFFFFu);
        borrow = (uint32_t)(step >> 63);
    }
    return borrow;
}

static void subtract(field_t r, const field_t a, const field_t b) {
    subtract_small(r, difference(r, a, b) * FOLD);
}

static void multiply(field_t r, const field_t a, const field_t b) {
    uint32_t product[2 * WORDS] = {0};
    for (int i = 0; i < WORDS; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < WORDS; j++) {
            carry += (uint64_t)a[i] * b[j] + product[i + j];
            product[i + j] = (uint32_t)(carry & 0xFFFFFFFFu);
            carry >>= 32;
        }
        product[i + WORDS] = (uint32_t)carry;
    }
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)product[i + WORDS] * FOLD + product[i];
        r[i] = (uint32_t)(carry & 0xFFFFFFFFu);
        carry >>= 32;
    }
    add_small(r, (uint32_t)carry * FOLD);
}

/* a to the power 2^bits - 32 + low, low < 32: in binary bits - 5 ones, then the five bits of low. */
static void power(field_t r, const field_t a, int bits, unsigned low) {
    field_t result;
    memcpy(result, one, sizeof result);
    for (int i = bits - 1; i >= 0; i--) {
        multiply(result, result, result);
        if (i >= 5 || (low >> i & 1u) != 0) {
            multiply(result, result, a);
        }
    }
    memcpy(r, result, sizeof result);
}

/* The one representative below p. */
static void reduce(field_t a) {
    field_t less;
    while (difference(less, a, prime) == 0) {
        memcpy(a, less, sizeof less);
    }
}

static bool equal(const field_t a, const field_t b) {
    field_t d;
    subtract(d, a, b);
    reduce(d);
    uint32_t any = 0;
    for (int i = 0; i < WORDS; i++) {
        any |= d[i];
    }
    return any == 0;
}

/* The complete addition of twisted Edwards curves with a = -1: it holds for equal and for neutral points too. */
static void add_points(point_t *r, const point_t *p, const point_t *q) {
    field_t a, b, c, d, e, f;
    subtract(a, p->y, p->x);
    subtract(e, q->y, q->x);
    multiply(a, a, e);
    add(b, p->y, p->x);
    add(e, q->y, q->x);
    multiply(b, b, e);
    multiply(c, p->t, q->t);
    multiply(c, c, twice_d);
    multiply(d, p->z, q->z);
    add(d, d, d);
    subtract(e, b, a);
    subtract(f, d, c);
    add(d, d, c);
    add(b, b, a);
    multiply(r->x, e, f);
    multiply(r->y, d, b);
    multiply(r->t, e, b);
    multiply(r->z, f, d);
}

static void read_words(uint32_t words[WORDS], const uint8_t *bytes) {
    for (int i = 0; i < WORDS; i++) {
        words[i] = get_u32(bytes + 4 * i);
    }
}

/* The point of a compressed encoding; false when there is none, or the encoding is not the shortest. */
static bool read_point(point_t *p, const uint8_t bytes[32]) {
    field_t u, v, w, t;
    read_words(p->y, bytes);
    const uint32_t sign = p->y[WORDS - 1] >> 31;
    p->y[WORDS - 1] &= 0x7FFFFFFFu;
    if (difference(t, p->y, prime) == 0) {
        return false;
    }
    multiply(w, p->y, p->y);
    subtract(u, w, one);
    multiply(v, w, curve_d);
    add(v, v, one);
    /* x = u v^3 (u v^7)^((p - 5) / 8) is a root of u / v, or of its negative. */
    multiply(w, v, v);
    multiply(w, w, v);
    multiply(p->x, u, w);
    multiply(t, w, w);
    multiply(t, t, v);
    multiply(t, t, u);
    power(t, t, 252, 29);
    multiply(p->x, p->x, t);
    multiply(w, p->x, p->x);
    multiply(w, w, v);
    if (!equal(w, u)) {
        add(w, w, u);
        memset(t, 0, sizeof t);
        if (!equal(w, t)) {
            return false;
        }
        multiply(p->x, p->x, root_of_minus_1);
    }
    reduce(p->x);
    memset(t, 0, sizeof t);
    if ((p->x[0] & 1u) != sign) {
        if (equal(p->x, t)) {
            return false;
        }
        subtract(p->x, prime, p->x);
    }
    memcpy(p->z, one, sizeof one);
    multiply(p->t, p->x, p->y);
    return true;
}

static void write_point(uint8_t bytes[32], const point_t *p) {
    field_t inverse, x, y;
    power(inverse, p->z, 255, 11);
    multiply(x, p->x, inverse);
    multiply(y, p->y, inverse);
    reduce(x);
    reduce(y);
    y[WORDS - 1] |= (x[0] & 1u) << 31;
    for (int i = 0; i < WORDS; i++) {
        put_u32(bytes + 4 * i, y[i]);
    }
}

/* A digest of 64 bytes, least first, modulo the order: one bit after the other, highest first. */
static void reduce_digest(uint32_t r[WORDS], const uint8_t digest[SHA512_BYTES]) {
    memset(r, 0, WORDS * sizeof r[0]);
    for (int bit = 511; bit >= 0; bit--) {
        uint32_t less[WORDS];
        uint32_t carry = (uint32_t)digest[bit >> 3] >> (bit & 7) & 1u;
        for (int i = 0; i < WORDS; i++) {
            const uint32_t top = r[i] >> 31;
            r[i] = r[i] << 1 | carry;
            carry = top;
        }
        if (difference(less, r, order) == 0) {
            memcpy(r, less, sizeof less);
        }
    }
}

/* s base + h p. */
static void combine(point_t *r, const uint32_t s[WORDS], const uint32_t h[WORDS], const point_t *p) {
    point_t both;
    add_points(&both, &base, p);
    memset(r, 0, sizeof *r);
    memcpy(r->y, one, sizeof one);
    memcpy(r->z, one, sizeof one);
    for (int bit = 255; bit >= 0; bit--) {
        const uint32_t of_s = s[bit >> 5] >> (bit & 31) & 1u;
        const uint32_t of_h = h[bit >> 5] >> (bit & 31) & 1u;
        add_points(r, r, r);
        if (of_s != 0 || of_h != 0) {
            add_points(r, r, of_s == 0 ? p : of_h == 0 ? &base : &both);
        }
    }
}

bool ed25519_is_signed(const uint8_t key[ED25519_KEY_BYTES], const uint8_t signature[ED25519_SIGNATURE_BYTES],
                       const uint8_t *message, uint32_t bytes) {
    sha512_t hash;
    uint8_t digest[SHA512_BYTES];
    uint32_t s[WORDS], h[WORDS];
    point_t a, r;
    read_words(s, signature + 32);
    if (difference(h, s, order) == 0 || !read_point(&a, key)) {
        return false;
    }
    subtract(a.x, prime, a.x);
    subtract(a.t, prime, a.t);
    sha512_start(&hash);
    sha512_add(&hash, signature, 32);
    sha512_add(&hash, key, ED25519_KEY_BYTES);
    sha512_add(&hash, message, bytes);
    sha512_end(&hash, digest);
    reduce_digest(h, digest);
    combine(&r, s, h, &a);
    write_point(digest, &r);
    return memcmp(digest, signature, 32) == 0;
}
