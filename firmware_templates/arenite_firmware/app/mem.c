/* SPDX-License-Identifier: Apache-2.0 */
/* The four memory functions that compilers call on their own, for firmware that links no C library. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

/* Keeps the compiler from recognising these loops and turning each into a call of itself. */
#define OPAQUE() __asm__ volatile("" ::: "memory")

typedef uint32_t __attribute__((may_alias)) word_t;

static int both_aligned(const void *a, const void *b) { return (((uintptr_t)a | (uintptr_t)b) & 3u) == 0; }

static void copy_up(uint8_t *to, const uint8_t *from, size_t bytes) {
    if (both_aligned(to, from)) {
        for (; bytes >= 16; bytes -= 16, to += 16, from += 16) {
            word_t *t = (word_t *)(void *)to;
            const word_t *f = (const word_t *)(const void *)from;
            const word_t a = f[0], b = f[1], c = f[2], d = f[3];
            t[0] = a;
            t[1] = b;
            t[2] = c;
            t[3] = d;
            OPAQUE();
        }
    }
    for (; bytes != 0; bytes--) {
        *to++ = *from++;
        OPAQUE();
    }
}

static void copy_down(uint8_t *to, const uint8_t *from, size_t bytes) {
    while (bytes != 0) {
        bytes--;
        to[bytes] = from[bytes];
        OPAQUE();
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    copy_up((uint8_t *)to, (const uint8_t *)from, bytes);
    return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
    if ((uintptr_t)to - (uintptr_t)from >= bytes) {
        copy_up((uint8_t *)to, (const uint8_t *)from, bytes);
    } else {
        copy_down((uint8_t *)to, (const uint8_t *)from, bytes);
    }
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    uint8_t *p = (uint8_t *)to;
    const uint8_t byte = (uint8_t)value;
    const word_t word = byte * 0x01010101u;
    for (; bytes != 0 && ((uintptr_t)p & 3u) != 0; bytes--) {
        *p++ = byte;
        OPAQUE();
    }
    for (; bytes >= 4; bytes -= 4, p += 4) {
        *(word_t *)(void *)p = word;
        OPAQUE();
    }
    for (; bytes != 0; bytes--) {
        *p++ = byte;
        OPAQUE();
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes) {
    const uint8_t *p = (const uint8_t *)a;
    const uint8_t *q = (const uint8_t *)b;
    for (; bytes != 0; bytes--, p++, q++) {
        if (*p != *q) {
            return *p < *q ? -1 : 1;
        }
    }
    return 0;
}
