/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and pins of STM32F4 and STM32F7 (ST RM0390 chapters 3, 5 and 6, RM0410 chapters 3, 4 and 5): external oscillator,
 * PLL, over-drive, flash wait states; then the serial port, and a QSPI flash where the board has one. */
#include "board.h"
#include "drivers.h"
#include "stm32.h"
#ifdef BOARD_CACHES
#include "cortex_m7_caches.h"
#endif
#ifdef BOARD_QSPI_DIVIDER
#include "stm32_qspi.h"
#endif

#define RCC 0x40023800u
#define FLASH 0x40023C00u
#define PWR 0x40007000u
#define GPIO 0x40020000u
#define QSPI 0xA0001000u

enum { CR = 0x00, PLLCFGR = 0x04, CFGR = 0x08, AHB1ENR = 0x30, AHB3ENR = 0x38, APB1ENR = 0x40 };
enum { PWR_CR = 0x00, PWR_CSR = 0x04, FLASH_ACR = 0x00 };
enum { PLL_ON = 1 << 24, PLL_READY = 1 << 25 };
enum { PWR_CLOCK = 1 << 28, VOS_SCALE_1 = 3 << 14, OVER_DRIVE = 1 << 16, OVER_DRIVE_SWITCH = 1 << 17 };
enum { SW_PLL = 2, SWS_PLL = 2 << 2, SWS = 3 << 2, PLL_FROM_HSE = 1 << 22, QSPI_CLOCK = 1 << 1 };

/* Bits of CFGR: a prescaler of 1, 2, 4, 8 or 16 of an APB bus. */
#define PRESCALER(divider)                                                                                   \
    ((divider) == 1u ? 0u : (divider) == 2u ? 4u : (divider) == 4u ? 5u : (divider) == 8u ? 6u : 7u)

static volatile uint32_t *rcc(uint32_t offset) { return &STM32_REGISTER(RCC, offset); }

static void over_drive_on(void) {
    STM32_REGISTER(PWR, PWR_CR) |= OVER_DRIVE;
    stm32_wait(&STM32_REGISTER(PWR, PWR_CSR), OVER_DRIVE, OVER_DRIVE);
    STM32_REGISTER(PWR, PWR_CR) |= OVER_DRIVE_SWITCH;
    stm32_wait(&STM32_REGISTER(PWR, PWR_CSR), OVER_DRIVE_SWITCH, OVER_DRIVE_SWITCH);
}

static void clock_on(void) {
    stm32_hse_on(rcc(CR));
    *rcc(APB1ENR) |= PWR_CLOCK;
    STM32_REGISTER(PWR, PWR_CR) |= VOS_SCALE_1;
    stm32_wait(rcc(CR), STM32_HSE_READY, STM32_HSE_READY);
    stm32_change(RCC, PLLCFGR, 0x0043FFFFu,
                 PLL_FROM_HSE | (BOARD_PLL_P / 2u - 1u) << 16 | BOARD_PLL_N << 6 | BOARD_PLL_M);
    *rcc(CR) |= PLL_ON;
    if (BOARD_OVER_DRIVE != 0u) {
        over_drive_on();
    }
    stm32_wait(rcc(CR), PLL_READY, PLL_READY);
    STM32_REGISTER(FLASH, FLASH_ACR) = BOARD_FLASH_ACCESS;
    stm32_wait(&STM32_REGISTER(FLASH, FLASH_ACR), 0xFu, BOARD_FLASH_ACCESS & 0xFu);
    stm32_change(RCC, CFGR, 0xFCF3u,
                 PRESCALER(BOARD_APB2_DIVIDER) << 13 | PRESCALER(BOARD_APB1_DIVIDER) << 10);
    *rcc(CFGR) |= SW_PLL;
    stm32_wait(rcc(CFGR), SWS, SWS_PLL);
}

void hardware_init(void) {
#ifdef BOARD_CACHES
    cortex_m7_caches_on();
#endif
    clock_on();
    stm32_pins_on(RCC, GPIO, rcc(AHB1ENR));
#ifdef BOARD_QSPI_DIVIDER
    *rcc(AHB3ENR) |= QSPI_CLOCK;
    stm32_qspi_pins(GPIO, rcc(AHB1ENR));
    stm32_qspi_map(QSPI);
#endif
}
