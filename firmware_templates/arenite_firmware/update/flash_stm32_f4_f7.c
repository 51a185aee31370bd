/* SPDX-License-Identifier: Apache-2.0 */
/* The flash of STM32F4 and STM32F7 with one bank (ST RM0090 and RM0390 chapter 3, RM0410 chapter 3), written a word at a
 * time, which needs 2.7 V. Slots lie in the large sectors; what is below the first of these, five sectors, is as large as
 * one of them. */
#define FLASH 0x40023C00u
enum { ACR = 0x00, KEYR = 0x04, SR = 0x0C, CR = 0x10 };
#define BUSY (1u << 16)
#define ERRORS 0xF2u /* operation, write protection, alignment, parallelism, sequence */

#include "flash_stm32.h"

#define PROGRAM (1u << 0)
#define ERASE_SECTOR (1u << 1)
#define SECTOR_SHIFT 3
#define WORDS (2u << 8) /* 32 bits at once */
#define SMALL_SECTORS 5u

bool flash_erase(void *context, uint32_t address) {
    (void)context;
    const uint32_t large = (address - FLASH_START) / UPDATE_SECTOR_BYTES;
    if (large == 0) {
        return false; /* the loader is there */
    }
    return erase_by(WORDS | ERASE_SECTOR | (SMALL_SECTORS - 1u + large) << SECTOR_SHIFT, address);
}

bool flash_write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes) {
    (void)context;
    return write_by(WORDS | PROGRAM, sizeof(uint32_t), address, from, bytes);
}
