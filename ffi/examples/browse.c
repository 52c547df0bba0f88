/* Browses the mini app directory in the terminal: the list follows every key, the arrows choose, Enter shows the app, Escape goes
 * back and then leaves. Ctrl-L draws the screen anew.
 *
 *   browse DATA_DIR CATALOG_URL      browse /tmp/town sample:
 *
 *   cc browse.c $(pkg-config --cflags --libs townsquare ncursesw)
 *
 * One loop waits for the keyboard and for the library, whose callback runs on this thread: no lock is needed. */
#define _XOPEN_SOURCE 700 /* the wide characters of ncurses, and wcwidth */

#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <townsquare.h>
#include <unistd.h>
#include <wchar.h>

enum { ENTER = '\r', ESCAPE = 0x1B, REDRAW = 0x0C, BACKSPACE = 0x7F };

typedef struct {
    const tsq_client *client;
    char query[256]; /* UTF-8 */
    size_t chosen;
    bool is_loaded, shows_details;
    tsq_mini_apps *apps; /* what the list shows; NULL before the catalog is loaded */
    tsq_error *err;      /* of the load or of the last search; NULL if it succeeded */
} browser;

/* Writes a text from a place of the screen up to the end of the row `last`. The text is UTF-8; the terminal may have another
 * encoding. Characters that are not printable are left out: the catalog may be hostile. Returns the column after the text. */
static int put_lines(int row, int column, int last, tsq_str text) {
    mbstate_t state;
    memset(&state, 0, sizeof state);
    if (row > last) return column;
    move(row, column);
    for (size_t at = 0; at < text.len;) {
        wchar_t character = L'?';
        const size_t length = mbrtowc(&character, text.ptr + at, text.len - at, &state);
        if (length == (size_t)-1 || length == (size_t)-2) {
            memset(&state, 0, sizeof state);
            character = L'?';
        }
        at += length > 0 && length <= text.len - at ? length : 1;
        const int width = wcwidth(character);
        if (width < 0 || character == L'\0') continue;
        if (column + width > COLS) {
            if (++row > last) break;
            move(row, column = 0);
        }
        addnwstr(&character, 1);
        column += width;
    }
    return column;
}

static int put(int row, int column, tsq_str text) { return row < LINES ? put_lines(row, column, row, text) : column; }

static void put_field(int row, const char *name, tsq_str value) { put(row, put(row, 0, tsq_str_from(name)), value); }

/* Called once by tsq_client_dispatch: when the catalog is loaded, or cannot be. */
static void loaded(const tsq_error *error, void *user_data) {
    browser *self = (browser *)user_data;
    self->is_loaded = error == NULL;
    if (error != NULL) self->err = tsq_error_clone(error);
}

/* Reads what the list shows: as many apps as fit. */
static void search(browser *self) {
    const tsq_selection first = TSQ_SELECTION((uint32_t)(LINES > 4 ? LINES - 2 : 2));
    tsq_mini_apps_free(self->apps);
    self->apps = NULL;
    tsq_error_free(self->err);
    self->err = NULL;
    if (self->query[0] == '\0') {
        tsq_discovery_get_trending_mini_apps(self->client, TSQ_STR("24h"), &first, &self->apps, &self->err);
    } else {
        tsq_discovery_search_mini_apps(self->client, tsq_str_from(self->query), &first, &self->apps, &self->err);
    }
    const size_t count = tsq_mini_apps_len(self->apps);
    if (self->chosen >= count) self->chosen = count > 0 ? count - 1 : 0;
}

static void draw_list(const browser *self) {
    for (size_t i = 0; i < tsq_mini_apps_len(self->apps); i++) {
        const tsq_mini_app *app = tsq_mini_apps_at(self->apps, i);
        const int row = 2 + (int)i;
        if (i == self->chosen) attron(A_REVERSE);
        const int column = put(row, 0, tsq_mini_app_name(app));
        put(row, put(row, column, TSQ_STR("  ")), tsq_mini_app_subtitle(app));
        attroff(A_REVERSE);
    }
}

static void draw_details(const tsq_mini_app *app) {
    put_field(2, "", tsq_mini_app_name(app));
    put_field(3, "", tsq_mini_app_home_url(app));
    put_field(4, "category  ", tsq_mini_app_category(app));
    put_field(5, "author    ", tsq_author_username(tsq_mini_app_author(app)));
    put_lines(7, 0, LINES - 1, tsq_mini_app_description(app));
}

static void draw(browser *self) {
    if (self->is_loaded) search(self);
    const tsq_mini_app *app = tsq_mini_apps_at(self->apps, self->chosen);
    erase();
    if (self->err != NULL) {
        put(1, 0, tsq_error_text(self->err));
    } else if (!self->is_loaded) {
        put(1, 0, TSQ_STR("loading"));
    }
    if (self->shows_details && app != NULL) {
        draw_details(app);
    } else {
        draw_list(self);
    }
    /* The last text, so that the cursor stands behind it. */
    const int column = put(0, 0, TSQ_STR("> "));
    put(0, column, tsq_str_from(self->query));
    refresh();
}

static void erase_character(char *query) {
    size_t length = strlen(query);
    while (length > 0 && ((unsigned char)query[length - 1] & 0xC0U) == 0x80U) length--;
    query[length > 0 ? length - 1 : 0] = '\0';
}

/* Takes a key, or a character that is none. Returns false when the user leaves. */
static bool press(browser *self, int is_key, wint_t key) {
    char bytes[16]; /* MB_LEN_MAX */
    mbstate_t state;
    if (is_key == KEY_CODE_YES) {
        if (key == KEY_UP && self->chosen > 0) self->chosen--;
        if (key == KEY_DOWN) self->chosen++;
        if (key == KEY_BACKSPACE) erase_character(self->query);
    } else if (key == ESCAPE) {
        if (!self->shows_details) return false;
        self->shows_details = false;
    } else if (key == ENTER) {
        self->shows_details = true;
    } else if (key == BACKSPACE || key == '\b') {
        erase_character(self->query);
    } else if (key == REDRAW) {
        clearok(curscr, TRUE);
    } else if (wcwidth((wchar_t)key) > 0) {
        memset(&state, 0, sizeof state);
        const size_t used = strlen(self->query), length = wcrtomb(bytes, (wchar_t)key, &state);
        if (length > sizeof bytes || used + length >= sizeof self->query) return true;
        memcpy(self->query + used, bytes, length);
        self->query[used + length] = '\0';
        self->chosen = 0;
        self->shows_details = false;
    }
    return true;
}

/* Waits for keys and for the library, until the user leaves. Returns an error that ended the loop, or NULL. */
static tsq_error *run(browser *self, int library) {
    struct pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {library, POLLIN, 0}};
    tsq_error *err = NULL;
    wint_t key = 0;
    for (;;) {
        draw(self);
        /* A signal ends the wait too: ncurses handles that of a new size of the window, and returns it as a key. */
        waits[0].revents = waits[1].revents = 0;
        poll(waits, 2, -1);
        if (waits[1].revents != 0 && tsq_client_dispatch(self->client, &err) != TSQ_OK) return err;
        if ((waits[0].revents & ~POLLIN) != 0) return NULL;
        for (int is_key = get_wch(&key); is_key != ERR; is_key = get_wch(&key)) {
            if (!press(self, is_key, key)) return NULL;
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "usage, in a terminal: browse DATA_DIR CATALOG_URL\n");
        return 2;
    }
    setlocale(LC_ALL, ""); /* the encoding of the terminal */
    tsq_error *err = NULL;
    tsq_config *config = tsq_config_new();
    tsq_client *client = NULL;
    int library = 0;
    browser self;
    memset(&self, 0, sizeof self);
    /* The descriptor before the preload, so that its callback runs in the loop. */
    if (tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(argv[1]), &err) == TSQ_OK &&
        tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(argv[2]), &err) == TSQ_OK &&
        tsq_client_open(config, &client, &err) == TSQ_OK && tsq_client_poll_fd(client, &library, &err) == TSQ_OK &&
        tsq_discovery_preload(client, loaded, &self, NULL, &err) == TSQ_OK) {
        self.client = client;
        initscr();
        cbreak(); /* Ctrl-C ends the program: ncurses restores the terminal. */
        noecho();
        nonl(); /* Enter is '\r'. */
        keypad(stdscr, TRUE);
        nodelay(stdscr, TRUE);
        set_escdelay(25); /* milliseconds; until then the bytes of an arrow must follow Escape */
        err = run(&self, library);
        endwin();
    }
    const int failed = err != NULL;
    if (failed) fprintf(stderr, "browse: %.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    tsq_error_free(self.err);
    tsq_mini_apps_free(self.apps);
    tsq_client_free(client);
    tsq_config_free(config);
    return failed;
}
