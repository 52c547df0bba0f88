/* Options from environment variables from C, options of a URL that are set again, and the file descriptors of a client. Also compiled as C++: keep to the common
 * subset.
 *
 * environment CATALOG FOLDER: the variable TSQ_TEST_OPTIONS names the table of options; the catalog is not read. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static const char *folder;

/* Sets an option whose value may contain DIR, which is the folder. */
static void set(tsq_config *config, const char *name, const char *value) {
    char text[4096];
    const char *dir = strstr(value, "DIR");
    if (dir != NULL) {
        snprintf(text, sizeof text, "%.*s%s%s", (int)(dir - value), value, folder, dir + 3);
    } else {
        snprintf(text, sizeof text, "%s", value);
    }
    CHECK(tsq_config_set(config, tsq_str_from(name), tsq_str_from(text), NULL) == TSQ_OK);
}

/* Whether a call failed for an option, and named it. Frees the error. */
static int names(tsq_status status, tsq_error *err, const char *option) {
    char text[256];
    int named;
    snprintf(text, sizeof text, "Option %s", option);
    named = status == TSQ_CONFIG && has(tsq_error_text(err), text);
    tsq_error_free(err);
    return named;
}

static void a_variable_holds_until_the_option_is_set(const char *name, const char *refused, const char *accepted) {
    char variable[256];
    size_t i;
    tsq_client *client = NULL;
    tsq_error *err = NULL;
    tsq_status status;
    tsq_config *config = tsq_config_new();
    snprintf(variable, sizeof variable, "TOWNSQUARE_%s", name);
    for (i = 0; variable[i] != '\0'; i++) {
        variable[i] = (char)toupper((unsigned char)variable[i]);
    }
    setenv(variable, refused, 1);
    if (strcmp(name, "data_dir") == 0) {
        status = tsq_client_open(NULL, &client, &err);
        CHECK(names(status, err, name) && client == NULL);
    } else {
        set(config, "data_dir", "DIR/data");
    }
    err = NULL;
    status = tsq_client_open(config, &client, &err);
    CHECK(names(status, err, name) && client == NULL);
    err = NULL;
    status = tsq_client_shared(config, &client, &err);
    CHECK(names(status, err, name) && client == NULL);
    set(config, name, accepted);
    CHECK(tsq_client_open(config, &client, NULL) == TSQ_OK);
    CHECK(tsq_client_close(client, NULL) == TSQ_OK);
    tsq_client_free(client);
    tsq_config_free(config);
    unsetenv(variable);
}

/* Writes the URL of options that sets one option. A value that contains DIR gets the folder. */
static void url_of(char *url, size_t size, const char *name, const char *value) {
    char text[4096];
    const char *dir = strstr(value, "DIR");
    const char *next;
    size_t len;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(dir != NULL ? dir - value : 0), value, dir != NULL ? folder : "", dir != NULL ? dir + 3 : value);
    if (strcmp(name, "data_dir") == 0) {
        snprintf(url, size, "townsquare:%s", text);
        return;
    }
    len = (size_t)snprintf(url, size, "townsquare:%s/data?%s=", folder, name);
    for (next = text; *next != '\0' && len + 4 < size; next++) {
        len += (size_t)snprintf(url + len, size - len, "%%%02X", (unsigned char)*next);
    }
}

static void a_url_sets_the_option(const char *name, const char *refused, const char *accepted) {
    char url[8192];
    tsq_config *config = NULL;
    tsq_client *client = NULL;
    tsq_error *err = NULL;
    tsq_status status;
    url_of(url, sizeof url, name, refused);
    status = tsq_config_from_url(tsq_str_from(url), &config, &err);
    if (status == TSQ_OK) {
        status = tsq_client_open(config, &client, &err);
    }
    CHECK(names(status, err, name) && client == NULL);
    tsq_config_free(config);
    url_of(url, sizeof url, name, accepted);
    CHECK(tsq_config_from_url(tsq_str_from(url), &config, NULL) == TSQ_OK);
    CHECK(tsq_client_open(config, &client, NULL) == TSQ_OK);
    CHECK(tsq_client_close(client, NULL) == TSQ_OK);
    tsq_client_free(client);
    tsq_config_free(config);
}

/* Two clients in memory are separate, and leave no file in the working folder. */
static void a_client_in_memory_writes_no_file(void) {
    static tsq_new_space space;
    char path[4096], back[4096];
    FILE *file;
    size_t i;
    tsq_client *clients[2] = {NULL, NULL}, *service = NULL, *refused = NULL;
    tsq_space_list *found[2] = {NULL, NULL};
    tsq_error *err = NULL;
    tsq_status status;
    tsq_config *config = tsq_config_new();
    space.name = TSQ_STR("Harbor");
    space.is_public = true;
    CHECK(getcwd(back, sizeof back) != NULL && chdir(folder) == 0);
    set(config, "data_dir", ":memory:");
    for (i = 0; i < 2; i++) {
        CHECK(tsq_client_open(config, &clients[i], NULL) == TSQ_OK);
    }
    CHECK(tsq_client_as_service(clients[0], &service, NULL) == TSQ_OK);
    CHECK(tsq_spaces_create_space(service, &space, NULL, NULL) == TSQ_OK);
    for (i = 0; i < 2; i++) {
        CHECK(tsq_spaces_get_public_spaces(clients[i], TSQ_DEFAULT_PAGE, 0, &found[i], NULL) == TSQ_OK);
        CHECK(tsq_space_list_len(found[i]) == 1 - i);
        tsq_space_list_free(found[i]);
    }
    snprintf(path, sizeof path, "%s/:memory:", folder);
    file = fopen(path, "r");
    CHECK(file == NULL && (file = fopen("townsquare.db", "r")) == NULL && (file = fopen("townsquare-data", "r")) == NULL);
    for (i = 0; i < 2; i++) {
        CHECK(tsq_client_close(clients[i], NULL) == TSQ_OK);
        tsq_client_free(clients[i]);
    }
    tsq_client_free(service);
    set(config, "persist_session", "true");
    status = tsq_client_open(config, &refused, &err);
    CHECK(names(status, err, "persist_session") && refused == NULL);
    tsq_config_free(config);
    CHECK(chdir(back) == 0);
}

static void the_sample_catalog_needs_no_key(void) {
    tsq_client *client = NULL;
    tsq_mini_apps *apps = NULL;
    tsq_selection first = TSQ_SELECTION(100);
    tsq_config *config = tsq_config_new();
    set(config, "data_dir", ":memory:");
    set(config, "catalog_url", "sample:");
    CHECK(tsq_client_open(config, &client, NULL) == TSQ_OK);
    CHECK(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), &first, &apps, NULL) == TSQ_OK);
    CHECK(tsq_mini_apps_len(apps) == 40);
    tsq_mini_apps_free(apps);
    CHECK(tsq_client_close(client, NULL) == TSQ_OK);
    tsq_client_free(client);
    tsq_config_free(config);
}

static void an_option_of_a_url_is_not_set_again_to_another_value(void) {
    tsq_config *config = NULL;
    tsq_error *err = NULL;
    tsq_status status = tsq_config_from_url(TSQ_STR("townsquare:town?catalog_tries=2&catalog_tries=3"), &config, &err);
    CHECK(names(status, err, "catalog_tries is given twice") && config == NULL);
    CHECK(tsq_config_from_url(TSQ_STR("townsquare:town?catalog_tries=2"), &config, NULL) == TSQ_OK);
    err = NULL;
    status = tsq_config_set(config, TSQ_STR("catalog_tries"), TSQ_STR("3"), &err);
    CHECK(names(status, err, "catalog_tries is given twice"));
    err = NULL;
    status = tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR("elsewhere"), &err);
    CHECK(names(status, err, "data_dir is given twice"));
    CHECK(tsq_config_set(config, TSQ_STR("catalog_tries"), TSQ_STR("2"), NULL) == TSQ_OK);
    tsq_config_free(config);
}

#ifdef __linux__
static int descriptors(void) {
    int count = 0;
    DIR *open_files = opendir("/proc/self/fd");
    if (open_files == NULL) {
        return -1;
    }
    while (readdir(open_files) != NULL) {
        count++;
    }
    closedir(open_files);
    return count;
}

/* The numbers of the manual (SIZE LIMITS), with the 3 descriptors that the process keeps. */
static void a_client_has_few_descriptors(const char *data_dir, int least, int most) {
    int before = descriptors();
    tsq_client *client = NULL;
    tsq_space_list *spaces = NULL;
    tsq_config *config = tsq_config_new();
    set(config, "data_dir", data_dir);
    CHECK(tsq_client_open(config, &client, NULL) == TSQ_OK);
    CHECK(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, NULL) == TSQ_OK);
    tsq_space_list_free(spaces);
    CHECK(descriptors() - before >= least && descriptors() - before <= most);
    CHECK(tsq_client_close(client, NULL) == TSQ_OK);
    CHECK(descriptors() - before <= 4 + 3);
    tsq_client_free(client);
    CHECK(descriptors() - before <= 3);
    tsq_config_free(config);
}
#endif

/* The metrics that a new client leaves out. */
static void a_metric_without_a_value_is_left_out(void) {
    tsq_client *client = NULL;
    tsq_string *metrics = NULL;
    const char *absent[] = {"townsquare_catalog_age_seconds", "townsquare_callback_seconds", "operation=\"search_mini_apps\""};
    size_t i;
    tsq_config *config = tsq_config_new();
    set(config, "data_dir", ":memory:");
    CHECK(tsq_client_open(config, &client, NULL) == TSQ_OK);
    CHECK(tsq_client_metrics_prometheus(client, &metrics, NULL) == TSQ_OK);
    CHECK(has(tsq_string_view(metrics), "townsquare_catalog_stale"));
    for (i = 0; i < sizeof absent / sizeof *absent; i++) {
        const tsq_str text = tsq_string_view(metrics);
        CHECK(memmem(text.ptr, text.len, absent[i], strlen(absent[i])) == NULL);
    }
    tsq_string_free(metrics);
    CHECK(tsq_client_close(client, NULL) == TSQ_OK);
    tsq_client_free(client);
    tsq_config_free(config);
}

int main(int argc, char **argv) {
    char line[512];
    FILE *table = argc == 3 && getenv("TSQ_TEST_OPTIONS") != NULL ? fopen(getenv("TSQ_TEST_OPTIONS"), "r") : NULL;
    if (table == NULL) {
        fprintf(stderr, "usage: environment CATALOG FOLDER\n");
        return 2;
    }
    folder = argv[2];
    while (fgets(line, (int)sizeof line, table) != NULL) {
        char *refused = strchr(line, '|');
        char *accepted = refused == NULL ? NULL : strchr(refused + 1, '|');
        if (!CHECK(accepted != NULL)) {
            break;
        }
        *refused = *accepted = '\0';
        accepted[strcspn(accepted + 1, "\n") + 1] = '\0';
        a_variable_holds_until_the_option_is_set(line, refused + 1, accepted + 1);
        a_url_sets_the_option(line, refused + 1, accepted + 1);
    }
    fclose(table);
    an_option_of_a_url_is_not_set_again_to_another_value();
    a_client_in_memory_writes_no_file();
    the_sample_catalog_needs_no_key();
#ifdef __linux__
    a_client_has_few_descriptors(":memory:", 3, 4 + 3);
    a_client_has_few_descriptors("DIR/data", 9, 15 + 3);
#endif
    a_metric_without_a_value_is_left_out();
    return checks_done("environment");
}
