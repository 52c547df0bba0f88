/* Errors: branch on the kind, tell people what to do, and repeat only what may be repeated. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

/* Creates a space. Repeats the call if it may be repeated, and waits longer each time. */
static tsq_status create_space(const tsq_client *client, const tsq_new_space *space, tsq_space **out, tsq_error **err) {
    uint64_t wait = 100;
    for (int tries = 3;; tries--) {
        const tsq_status status = tsq_spaces_create_space(client, space, out, err);
        if (status == TSQ_OK || !tsq_error_is_retryable(*err) || tries == 1) return status;
        uint64_t known = 0;
        const uint64_t milliseconds = tsq_error_retry_after_ms(*err, &known) ? known : wait;
        const struct timespec pause = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
        nanosleep(&pause, NULL);
        tsq_error_free(*err);
        *err = NULL;
        wait *= 2;
    }
}

/* The sentence is for a log, the explanation for the developer, the status for an HTTP answer. Frees the error. */
static void tell(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    const tsq_str kind = tsq_status_name(status), code = tsq_error_code(*err), sentence = tsq_error_text(*err);
    const tsq_str advice = tsq_error_explanation(*err);
    printf("%.*s %.*s %d %.*s\n", TSQ_ARG(kind), TSQ_ARG(code), tsq_error_status(*err), TSQ_ARG(sentence));
    printf("  try: %.*s\n", TSQ_ARG(advice));
    tsq_error_free(*err);
    *err = NULL;
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *service = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);
    check(tsq_client_as_service(client, &service, &err), &err);

    tsq_space *space = NULL;
    tsq_new_space harbor = {0};
    harbor.name = TSQ_STR("Harbor");
    check(create_space(service, &harbor, &space, &err), &err);

    /* What a missing row means depends on the program: here a stranger asks for a private space. */
    tsq_space *seen = NULL;
    const tsq_status status = tsq_spaces_get_space(client, space->id, &seen, &err);
    if (status == TSQ_NOT_FOUND) {
        puts("There is no such space.");
        tsq_error_free(err);
        err = NULL;
    } else {
        check(status, &err);
        tsq_space_free(seen);
    }

    tsq_new_space quay = {0};
    quay.name = TSQ_STR("Quay");
    quay.id = space->id;
    tell(tsq_spaces_create_space(service, &quay, NULL, &err), &err);
    tsq_new_fidget clock = {0};
    clock.kind = TSQ_STR("clock");
    const tsq_str nowhere = TSQ_STR("0192f0c1-7a3b-7c4d-8e5f-000000000001");
    tell(tsq_fidgets_create_fidget(service, nowhere, &clock, NULL, &err), &err);
    const tsq_str first = {0};
    tsq_user_list *users = NULL;
    tell(tsq_auth_list_users(client, 100, first, &users, &err), &err);
    tsq_user_list_free(users);

    tsq_space_free(space);
    tsq_client_free(service);
    tsq_client_free(client);
    return 0;
}
