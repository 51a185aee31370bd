/* SPDX-License-Identifier: Apache-2.0 */
/* The flash of STM32G0, G4 and L4 with one bank (ST RM0444, RM0440 and RM0394, chapter 3): pages of 2 KB, written by double
 * words. */
#define FLASH 0x40022000u
enum { ACR = 0x00, KEYR = 0x08, SR = 0x10, CR = 0x14 };
#define BUSY 0x50000u /* and, on a G0, its control register (bit 18), which the others do not have */
#define ERRORS 0x3FAu /* operation, programming, protection, alignment, size, sequence, missed data, fast */

#include "flash_stm32.h"

#define PROGRAM (1u << 0)
#define ERASE_PAGE (1u << 1)
#define PAGE_SHIFT 3
#define DOUBLE_WORD_BYTES 8u

bool flash_erase(void *context, uint32_t address) {
    (void)context;
    return erase_by(ERASE_PAGE | (address - FLASH_START) / UPDATE_SECTOR_BYTES << PAGE_SHIFT, address);
}

bool flash_write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes) {
    (void)context;
    return write_by(PROGRAM, DOUBLE_WORD_BYTES, address, from, bytes);
}
