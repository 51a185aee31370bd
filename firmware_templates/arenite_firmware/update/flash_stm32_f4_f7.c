/* SPDX-License-Identifier: Apache-2.0 */
/* The flash of STM32F4 and STM32F7 with one bank (ST RM0090 and RM0390 chapter 3, RM0410 chapter 3), written a word at a
 * time, which needs 2.7 V. Slots lie in the large sectors; what is below the first of these, five sectors, is as large as
 * one of them. */
#include <string.h>

#include "board.h"
#include "flash_driver.h"
#include "update_config.h"

#define FLASH 0x40023C00u
#define FLASH_START 0x08000000u
#define REGISTER(offset) (*(volatile uint32_t *)(FLASH + (offset)))

enum { ACR = 0x00, KEYR = 0x04, SR = 0x0C, CR = 0x10 };
#define KEY_1 0x45670123u
#define KEY_2 0xCDEF89ABu
#define BUSY (1u << 16)
#define ERRORS 0xF2u /* operation, write protection, alignment, parallelism, sequence */
#define PROGRAM (1u << 0)
#define ERASE_SECTOR (1u << 1)
#define SECTOR_SHIFT 3
#define WORDS (2u << 8) /* 32 bits at once */
#define START (1u << 16)
#define LOCK (1u << 31)
#define SMALL_SECTORS 5u

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
#define CACHES_ON (3u << 9)
#define CACHES_RESET (3u << 11)

/* The flash's caches are emptied while they are off. */
static void forget(uint32_t address, uint32_t bytes) {
    (void)address;
    (void)bytes;
    const uint32_t access = REGISTER(ACR);
    REGISTER(ACR) = access & ~CACHES_ON;
    REGISTER(ACR) = (access & ~CACHES_ON) | CACHES_RESET;
    REGISTER(ACR) = access & ~CACHES_ON;
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

bool flash_read(void *context, uint32_t address, uint8_t *to, uint32_t bytes) {
    (void)context;
    memcpy(to, (const uint8_t *)(uintptr_t)address, bytes);
    return true;
}

bool flash_erase(void *context, uint32_t address) {
    (void)context;
    const uint32_t large = (address - FLASH_START) / UPDATE_SECTOR_BYTES;
    if (large == 0) {
        return false; /* the loader is there */
    }
    unlock();
    const uint32_t command = WORDS | ERASE_SECTOR | (SMALL_SECTORS - 1u + large) << SECTOR_SHIFT;
    REGISTER(CR) = command;
    REGISTER(CR) = command | START;
    const bool done = wait();
    REGISTER(CR) = LOCK;
    forget(address, UPDATE_SECTOR_BYTES);
    return done;
}

bool flash_write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes) {
    (void)context;
    bool done = true;
    unlock();
    REGISTER(CR) = WORDS | PROGRAM;
    for (uint32_t at = 0; at < bytes && done; at += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, from + at, sizeof word);
        *(volatile uint32_t *)(uintptr_t)(address + at) = word;
        done = wait();
    }
    REGISTER(CR) = LOCK;
    forget(address, bytes);
    return done;
}
