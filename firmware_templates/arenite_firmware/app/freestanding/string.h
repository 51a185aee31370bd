/* SPDX-License-Identifier: Apache-2.0 */
/* The part of <string.h> that firmware uses, for compilers that come without a C library. The macros give
 * back what a freestanding build takes away: that small copies of constant size become plain loads and
 * stores. */
#ifndef ARENITE_FREESTANDING_STRING_H
#define ARENITE_FREESTANDING_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define memmove(to, from, bytes) __builtin_memmove(to, from, bytes)
#define memset(to, value, bytes) __builtin_memset(to, value, bytes)
#define memcmp(a, b, bytes) __builtin_memcmp(a, b, bytes)

#endif
