/* SPDX-License-Identifier: Apache-2.0 */
/* What the flash controllers of STM32 families share. A driver that includes this has defined the places of FLASH, ACR, KEYR,
 * SR and CR, and the bits BUSY and ERRORS of SR. */
#ifndef ARENITE_FLASH_STM32_H
#define ARENITE_FLASH_STM32_H

#include <string.h>

#include "board.h"
#include "flash_driver.h"
#include "update_config.h"

#define FLASH_START 0x08000000u
#define REGISTER(offset) (*(volatile uint32_t *)(FLASH + (offset)))
#define KEY_1 0x45670123u
#define KEY_2 0xCDEF89ABu
#define START (1u << 16)
#define LOCK (1u << 31)

#ifdef BOARD_CACHES
#define LINE_BYTES 32u

/* The core's own cache may hold what was there before (ARMv7-M Architecture Reference Manual, B2.2: DCIMVAC). */
static void forget(uint32_t address, uint32_t bytes) {
    volatile uint32_t *const by_address = (volatile uint32_t *)0xE000EF5Cu;
    __asm__ volatile("dsb" ::: "memory");
    for (uint32_t at = address & ~(LINE_BYTES - 1u); at < address + bytes; at += LINE_BYTES) {
        *by_address = at;
    }
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}
#else
#define CACHES_ON (3u << 9)    /* code, data; which of them is there differs */
#define RESET_ABOVE_ON_SHIFT 2 /* from a cache's bit to the one that empties it, while it is off */

static void forget(uint32_t address, uint32_t bytes) {
    (void)address;
    (void)bytes;
    const uint32_t access = REGISTER(ACR);
    const uint32_t off = access & ~CACHES_ON;
    REGISTER(ACR) = off;
    REGISTER(ACR) = off | (access & CACHES_ON) << RESET_ABOVE_ON_SHIFT;
    REGISTER(ACR) = off;
    REGISTER(ACR) = access;
}
#endif

static bool wait(void) {
    __asm__ volatile("dsb" ::: "memory");
    while ((REGISTER(SR) & BUSY) != 0) {
    }
    return (REGISTER(SR) & ERRORS) == 0;
}

static void unlock(void) {
    (void)wait();
    if ((REGISTER(CR) & LOCK) != 0) {
        REGISTER(KEYR) = KEY_1;
        REGISTER(KEYR) = KEY_2;
    }
    REGISTER(SR) = ERRORS; /* those of an operation before, cleared by writing ones */
}

static bool erase_by(uint32_t command, uint32_t address) {
    unlock();
    REGISTER(CR) = command;
    REGISTER(CR) = command | START;
    const bool done = wait();
    REGISTER(CR) = LOCK;
    forget(address, UPDATE_SECTOR_BYTES);
    return done;
}

/* Stores units of some words; the controller is waited for after each unit. */
static bool write_by(uint32_t command, uint32_t unit_bytes, uint32_t address, const uint8_t *from,
                     uint32_t bytes) {
    bool done = true;
    unlock();
    REGISTER(CR) = command;
    for (uint32_t at = 0; at < bytes && done; at += unit_bytes) {
        for (uint32_t word_at = at; word_at < at + unit_bytes; word_at += sizeof(uint32_t)) {
            uint32_t word;
            memcpy(&word, from + word_at, sizeof word);
            *(volatile uint32_t *)(uintptr_t)(address + word_at) = word;
        }
        done = wait();
    }
    REGISTER(CR) = LOCK;
    forget(address, bytes);
    return done;
}

#endif
