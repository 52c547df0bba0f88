/* Forgets handles on purpose: proves that the leak check of the other programs sees what Rust allocates. Many, for the
 * last one may still be in a register when the check looks. */
#include <townsquare.h>

int main(void) {
    int made = 0;
    for (int i = 0; i < 100; i++) {
        made += tsq_config_new() != NULL;
    }
    return made != 100;
}
