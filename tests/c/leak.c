/* Leaks handles on purpose: shows that the leak check of the other programs detects memory that Rust allocates.
 *
 * A register may still hold the last handle during the check, and the padding of a handle may hold a pointer that its
 * stack frame held before: so the program leaks many handles and clears the stack between them. */
#include <townsquare.h>

static void clear_stack(void) {
    volatile char bytes[65536];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 0;
    }
}

int main(void) {
    int made = 0;
    for (int i = 0; i < 100; i++) {
        clear_stack();
        made += tsq_config_new() != NULL;
    }
    clear_stack();
    return made != 100;
}
