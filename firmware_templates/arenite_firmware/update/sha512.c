/* SPDX-License-Identifier: Apache-2.0 */
#include "sha512.h"

#include <string.h>

#define ROUNDS 80u
#define LENGTH_AT (SHA512_BLOCK_BYTES - 16u)

/* Fractional parts of the cube roots of the first 80 primes. */
static const uint64_t round_constants[ROUNDS] = {
    0x428A2F98D728AE22u, 0x7137449123EF65CDu, 0xB5C0FBCFEC4D3B2Fu, 0xE9B5DBA58189DBBCu, 0x3956C25BF348B538u,
    0x59F111F1B605D019u, 0x923F82A4AF194F9Bu, 0xAB1C5ED5DA6D8118u, 0xD807AA98A3030242u, 0x12835B0145706FBEu,
    0x243185BE4EE4B28Cu, 0x550C7DC3D5FFB4E2u, 0x72BE5D74F27B896Fu, 0x80DEB1FE3B1696B1u, 0x9BDC06A725C71235u,
    0xC19BF174CF692694u, 0xE49B69C19EF14AD2u, 0xEFBE4786384F25E3u, 0x0FC19DC68B8CD5B5u, 0x240CA1CC77AC9C65u,
    0x2DE92C6F592B0275u, 0x4A7484AA6EA6E483u, 0x5CB0A9DCBD41FBD4u, 0x76F988DA831153B5u, 0x983E5152EE66DFABu,
    0xA831C66D2DB43210u, 0xB00327C898FB213Fu, 0xBF597FC7BEEF0EE4u, 0xC6E00BF33DA88FC2u, 0xD5A79147930AA725u,
    0x06CA6351E003826Fu, 0x142929670A0E6E70u, 0x27B70A8546D22FFCu, 0x2E1B21385C26C926u, 0x4D2C6DFC5AC42AEDu,
    0x53380D139D95B3DFu, 0x650A73548BAF63DEu, 0x766A0ABB3C77B2A8u, 0x81C2C92E47EDAEE6u, 0x92722C851482353Bu,
    0xA2BFE8A14CF10364u, 0xA81A664BBC423001u, 0xC24B8B70D0F89791u, 0xC76C51A30654BE30u, 0xD192E819D6EF5218u,
    0xD69906245565A910u, 0xF40E35855771202Au, 0x106AA07032BBD1B8u, 0x19A4C116B8D2D0C8u, 0x1E376C085141AB53u,
    0x2748774CDF8EEB99u, 0x34B0BCB5E19B48A8u, 0x391C0CB3C5C95A63u, 0x4ED8AA4AE3418ACBu, 0x5B9CCA4F7763E373u,
    0x682E6FF3D6B2B8A3u, 0x748F82EE5DEFB2FCu, 0x78A5636F43172F60u, 0x84C87814A1F0AB72u, 0x8CC702081A6439ECu,
    0x90BEFFFA23631E28u, 0xA4506CEBDE82BDE9u, 0xBEF9A3F7B2C67915u, 0xC67178F2E372532Bu, 0xCA273ECEEA26619Cu,
    0xD186B8C721C0C207u, 0xEADA7DD6CDE0EB1Eu, 0xF57D4F7FEE6ED178u, 0x06F067AA72176FBAu, 0x0A637DC5A2C898A6u,
    0x113F9804BEF90DAEu, 0x1B710B35131C471Bu, 0x28DB77F523047D84u, 0x32CAAB7B40C72493u, 0x3C9EBE0A15C9BEBCu,
    0x431D67C49C100D4Cu, 0x4CC5D4BECB3E42B6u, 0x597F299CFC657E2Au, 0x5FCB6FAB3AD6FAECu, 0x6C44198C4A475817u,
};

static uint64_t rotate(uint64_t x, unsigned n) { return x >> n | x << (64u - n); }

static uint64_t big_endian(const uint8_t *p) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++) {
        value = value << 8 | p[i];
    }
    return value;
}

static void put_big_endian(uint8_t *p, uint64_t value) {
    for (unsigned i = 0; i < 8; i++) {
        p[i] = (uint8_t)(value >> (56u - 8u * i));
    }
}

static void take_block(sha512_t *hash) {
    uint64_t w[16];
    uint64_t s[8];
    for (unsigned i = 0; i < 16; i++) {
        w[i] = big_endian(hash->block + 8u * i);
    }
    memcpy(s, hash->state, sizeof s);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i >= 16) {
            const uint64_t a = w[(i + 1u) & 15u];
            const uint64_t b = w[(i + 14u) & 15u];
            w[i & 15u] += (rotate(a, 1) ^ rotate(a, 8) ^ a >> 7) + w[(i + 9u) & 15u] +
                          (rotate(b, 19) ^ rotate(b, 61) ^ b >> 6);
        }
        const uint64_t e = s[4];
        const uint64_t a = s[0];
        const uint64_t first = s[7] + (rotate(e, 14) ^ rotate(e, 18) ^ rotate(e, 41)) +
                               ((e & s[5]) ^ (~e & s[6])) + round_constants[i] + w[i & 15u];
        const uint64_t second =
            (rotate(a, 28) ^ rotate(a, 34) ^ rotate(a, 39)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += first;
        s[0] = first + second;
    }
    for (unsigned i = 0; i < 8; i++) {
        hash->state[i] += s[i];
    }
}

void sha512_start(sha512_t *hash) {
    /* Fractional parts of the square roots of the first 8 primes. */
    static const uint64_t start[8] = {0x6A09E667F3BCC908u, 0xBB67AE8584CAA73Bu, 0x3C6EF372FE94F82Bu,
                                      0xA54FF53A5F1D36F1u, 0x510E527FADE682D1u, 0x9B05688C2B3E6C1Fu,
                                      0x1F83D9ABFB41BD6Bu, 0x5BE0CD19137E2179u};
    memcpy(hash->state, start, sizeof start);
    hash->bytes = 0;
}

void sha512_add(sha512_t *hash, const uint8_t *data, uint32_t bytes) {
    while (bytes > 0) {
        const uint32_t used = (uint32_t)(hash->bytes % SHA512_BLOCK_BYTES);
        const uint32_t space = SHA512_BLOCK_BYTES - used;
        const uint32_t now = bytes < space ? bytes : space;
        memcpy(hash->block + used, data, now);
        hash->bytes += now;
        data += now;
        bytes -= now;
        if (now == space) {
            take_block(hash);
        }
    }
}

void sha512_end(sha512_t *hash, uint8_t digest[SHA512_BYTES]) {
    uint32_t used = (uint32_t)(hash->bytes % SHA512_BLOCK_BYTES);
    hash->block[used++] = 0x80;
    if (used > LENGTH_AT) {
        memset(hash->block + used, 0, SHA512_BLOCK_BYTES - used);
        take_block(hash);
        used = 0;
    }
    memset(hash->block + used, 0, SHA512_BLOCK_BYTES - used);
    put_big_endian(hash->block + LENGTH_AT + 8u, hash->bytes << 3);
    take_block(hash);
    for (unsigned i = 0; i < 8; i++) {
        put_big_endian(digest + 8u * i, hash->state[i]);
    }
}
