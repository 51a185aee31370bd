/* SPDX-License-Identifier: Apache-2.0 */
/* What a C library needs of Arm's MPS3 with the AN547 image under QEMU: start-up, standard streams on its serial port, a
 * heap, and an end through semihosting. A fault ends the program with 70. */
#include <stddef.h>
#include <stdint.h>

enum { TX_FULL = 1u, RX_FULL = 2u };
enum { SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026, FAULT = 70 };

static volatile uint32_t *const uart = (volatile uint32_t *)0x59303000u; /* DATA, STATE, CTRL, INT, BAUDDIV */
extern uint8_t __heap_start[], __heap_end[], __stack_end[];
extern uint32_t __bss_start[], __bss_end[];

int main(int count, char **arguments);
void exit(int code);
void Reset_Handler(void);
int _read(int file, char *to, int count);
int _write(int file, const char *from, int count);
int _close(int file);
int _lseek(int file, int offset, int whence);
int _isatty(int file);
int _fstat(int file, void *status);
int _getpid(void);
int _kill(int process, int signal);
void *_sbrk(ptrdiff_t bytes);
void _exit(int code);

int _read(int file, char *to, int count) {
    (void)file;
    int i = 0;
    while (i < count && (i == 0 || (uart[1] & RX_FULL) != 0)) {
        while ((uart[1] & RX_FULL) == 0) {
        }
        to[i++] = (char)uart[0];
    }
    return i;
}

int _write(int file, const char *from, int count) {
    (void)file;
    for (int i = 0; i < count; i++) {
        while ((uart[1] & TX_FULL) != 0) {
        }
        uart[0] = (uint8_t)from[i];
    }
    return count;
}

int _close(int file) { return (void)file, -1; }

int _lseek(int file, int offset, int whence) { return (void)file, (void)offset, (void)whence, -1; }

int _isatty(int file) { return (void)file, 0; }

int _fstat(int file, void *status) { return (void)file, (void)status, -1; }

int _getpid(void) { return 1; }

int _kill(int process, int signal) { return (void)process, (void)signal, -1; }

void *_sbrk(ptrdiff_t bytes) {
    static uint8_t *end = __heap_start;
    uint8_t *const start = end;
    if (bytes > __heap_end - end) {
        return (void *)-1;
    }
    end += bytes;
    return start;
}

void _exit(int code) {
    const uint32_t block[2] = {APPLICATION_EXIT, (uint32_t)code};
    register uint32_t operation __asm__("r0") = SYS_EXIT_EXTENDED;
    register const uint32_t *parameters __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(parameters) : "memory");
    for (;;) {
    }
}

static void fault(void) { _exit(FAULT); }

void Reset_Handler(void) {
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* vector registers on */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    for (volatile uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    uart[4] = 16;
    uart[2] = 3;
    exit(main(0, NULL));
}

typedef union {
    const void *stack;
    void (*handler)(void);
} vector_t;

__attribute__((section(".vectors"), used)) static const vector_t vectors[16] = {
    {.stack = __stack_end}, {.handler = Reset_Handler}, {.handler = fault}, {.handler = fault},
    {.handler = fault},     {.handler = fault},         {.handler = fault}, {.handler = fault},
};
