/* Leaks handles on purpose: shows that the leak check of the other programs detects memory that Rust allocates. It leaks
 * many, because a register may still hold the last one during the check. */
#include <townsquare.h>

int main(void) {
    int made = 0;
    for (int i = 0; i < 100; i++) {
        made += tsq_config_new() != NULL;
    }
    return made != 100;
}
