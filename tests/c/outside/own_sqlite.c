/* The functions of a host's own SQLite. The library does not call them. */

#include <stdio.h>
#include <stdlib.h>

static int called(void) {
    fputs("the library called the SQLite of the host\n", stderr);
    abort();
}

int sqlite3_initialize(void) { return called(); }
int sqlite3_open_v2(void) { return called(); }
int sqlite3_prepare_v2(void) { return called(); }
int sqlite3_prepare_v3(void) { return called(); }
int sqlite3_step(void) { return called(); }
int sqlite3_close(void) { return called(); }
const char *sqlite3_libversion(void) { return "of the host"; }
