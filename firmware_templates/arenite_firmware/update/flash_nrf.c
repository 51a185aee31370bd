/* SPDX-License-Identifier: Apache-2.0 */
/* The flash of Nordic nRF51 and nRF52 (nRF52840 Product Specification, chapter NVMC). */
#include <string.h>

#include "flash_driver.h"
#include "update_config.h"

#define NVMC 0x4001E000u
#define REGISTER(offset) (*(volatile uint32_t *)(NVMC + (offset)))

enum { READY = 0x400, CONFIG = 0x504, ERASE_PAGE = 0x508 };
enum { READ_ONLY = 0, WRITE_ENABLED = 1, ERASE_ENABLED = 2 };

static void wait(void) {
    while ((REGISTER(READY) & 1u) == 0) {
    }
}

static void allow(uint32_t what) {
    REGISTER(CONFIG) = what;
    wait();
}

bool flash_erase(void *context, uint32_t address) {
    (void)context;
    allow(ERASE_ENABLED);
    REGISTER(ERASE_PAGE) = address;
    wait();
    allow(READ_ONLY);
    return true;
}

bool flash_write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes) {
    (void)context;
    allow(WRITE_ENABLED);
    for (uint32_t at = 0; at < bytes; at += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, from + at, sizeof word);
        *(volatile uint32_t *)(uintptr_t)(address + at) = word;
        wait();
    }
    allow(READ_ONLY);
    return true;
}
