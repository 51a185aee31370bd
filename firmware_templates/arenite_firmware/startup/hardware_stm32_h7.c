/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks and pins of STM32H74x and H75x (ST RM0433 and RM0399, chapters 4, 6, 7 and 8): supply, voltage scale 1, external
 * oscillator, PLL1, the RAM of domain D2, the serial port, and a QSPI flash where the board has one.
 *
 * The supply is written once after power-on and must be the one that the board is wired for: else the chip stops. */
#include "board.h"
#include "cortex_m7_caches.h"
#include "drivers.h"
#include "stm32.h"
#ifdef BOARD_QSPI_DIVIDER
#include "stm32_qspi.h"
#endif

#define RCC 0x58024400u
#define FLASH 0x52002000u
#define PWR 0x58024800u
#define GPIO 0x58020000u
#define QSPI 0x52005000u

enum {
    CR = 0x00,
    CFGR = 0x10,
    D1CFGR = 0x18,
    D2CFGR = 0x1C,
    D3CFGR = 0x20,
    PLLCKSELR = 0x28,
    PLLCFGR = 0x2C
};
enum { PLL1DIVR = 0x30, AHB3ENR = 0xD4, AHB2ENR = 0xDC, AHB4ENR = 0xE0 };
enum { PWR_CSR1 = 0x04, PWR_CR3 = 0x0C, PWR_D3CR = 0x18, FLASH_ACR = 0x00 };
enum { PLL1_ON = 1 << 24, PLL1_READY = 1 << 25 };
enum { SUPPLY_MASK = 0x3F, ACTIVE_VOS_READY = 1 << 13, VOS_READY = 1 << 13, VOS_SCALE_1 = 3 << 14 };
enum { PLL_FROM_HSE = 2, PLL1_P_ON = 1 << 16, SW_PLL1 = 3, SWS = 7 << 3, SWS_PLL1 = 3 << 3 };
enum { HALF_AHB = 8, HALF_APB = 4 };
enum { D2_RAM = 7 << 29, QSPI_CLOCK = 1 << 14 };

static volatile uint32_t *rcc(uint32_t offset) { return &STM32_REGISTER(RCC, offset); }

static void supply_on(void) {
    stm32_change(PWR, PWR_CR3, SUPPLY_MASK, BOARD_SUPPLY);
    stm32_wait(&STM32_REGISTER(PWR, PWR_CSR1), ACTIVE_VOS_READY, ACTIVE_VOS_READY);
    stm32_change(PWR, PWR_D3CR, VOS_SCALE_1, VOS_SCALE_1);
    stm32_wait(&STM32_REGISTER(PWR, PWR_D3CR), VOS_READY, VOS_READY);
}

static void clock_on(void) {
    stm32_hse_on(rcc(CR));
    stm32_wait(rcc(CR), STM32_HSE_READY, STM32_HSE_READY);
    stm32_change(RCC, PLLCKSELR, 0x3F3u, BOARD_PLL_M << 4 | PLL_FROM_HSE);
    stm32_change(RCC, PLLCFGR, 0xFu, BOARD_PLL_INPUT_RANGE << 2); /* integer, wide VCO */
    *rcc(PLLCFGR) |= PLL1_P_ON;
    *rcc(PLL1DIVR) = 1u << 24 | 1u << 16 | (BOARD_PLL_P - 1u) << 9 | (BOARD_PLL_N - 1u);
    *rcc(CR) |= PLL1_ON;
    STM32_REGISTER(FLASH, FLASH_ACR) = BOARD_FLASH_ACCESS;
    stm32_wait(&STM32_REGISTER(FLASH, FLASH_ACR), 0x3Fu, BOARD_FLASH_ACCESS);
    *rcc(D1CFGR) =
        HALF_APB << 4 | HALF_AHB; /* core at full, buses at half, peripherals at a quarter of the PLL */
    *rcc(D2CFGR) = HALF_APB << 8 | HALF_APB << 4;
    *rcc(D3CFGR) = HALF_APB << 4;
    stm32_wait(rcc(CR), PLL1_READY, PLL1_READY);
    stm32_change(RCC, CFGR, 7u, SW_PLL1);
    stm32_wait(rcc(CFGR), SWS, SWS_PLL1);
}

void hardware_init(void) {
    cortex_m7_caches_on();
    supply_on();
    clock_on();
    *rcc(AHB2ENR) |= (uint32_t)D2_RAM;
    stm32_pins_on(RCC, GPIO, rcc(AHB4ENR));
#ifdef BOARD_QSPI_DIVIDER
    *rcc(AHB3ENR) |= QSPI_CLOCK;
    stm32_qspi_pins(GPIO, rcc(AHB4ENR));
    stm32_qspi_map(QSPI);
#endif
}
