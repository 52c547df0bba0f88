/* Gives the library half of the memory that it needs for a handle: shows that AddressSanitizer sees writes of a library that is compiled
 * with it. malloc returns more than these bytes, so nothing else is damaged without it. */
#include <stdlib.h>
#include <townsquare.h>

int main(void) {
    volatile size_t half = sizeof(tsq_config *) / 2;
    void *memory = malloc(half);
    if (memory == NULL) {
        return 1;
    }
    tsq_config **out = (tsq_config **)memory;
    tsq_error *err = NULL;
    tsq_status status = tsq_config_from_url(TSQ_STR("nothing"), out, &err);
    tsq_error_free(err);
    free(memory);
    return status == TSQ_OK;
}
