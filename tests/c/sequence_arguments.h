/* For call_sequences.c: arguments that an input chooses. Most are likely to be accepted; the others are at the edges, hostile, or
 * what an earlier call returned. */
#ifndef SEQUENCE_ARGUMENTS_H
#define SEQUENCE_ARGUMENTS_H

#include "sequence.h"

static const tsq_str absent = {NULL, 0};

/* Ids of rows, oldest first overwritten; the first is the user's. */
static char ids[12][40];
static size_t ids_known = 1;

static void know(tsq_str id) {
    if (id.ptr != NULL && id.len < sizeof ids[0]) {
        char *place = ids[ids_known < COUNT(ids) ? ids_known++ : 1 + below(COUNT(ids) - 1)];
        memset(place, 0, sizeof ids[0]);
        memcpy(place, id.ptr, id.len);
    }
}

static tsq_str lent(const char *text, size_t length) {
    tsq_str out;
    out.ptr = (const char *)lend(text, length);
    out.len = length;
    return out;
}

static tsq_str lent_text(const char *text) {
    return lent(text, strlen(text));
}

/* Texts that have broken programs. */
static const char *const hostile[] = {
    "", "a", "null", "{}", "[]", "0", "-1", "{\"a\":[1,{\"b\":null}],\"a\":2}", "[1e400]", "{\"a\":", "\"", "\\", "/", "..", "../a", "a/../b",
    "a//b", "/a", "a/", "%00", "%2e%2e%2f", "\xc3\xa9", "e\xcc\x81", "\xe2\x80\xaeg", "\xf0\x9f\x8f\x98", "\xff", "\xc3", "\xed\xa0\x80",
    "\xf4\x90\x80\x80", "' OR 1=1 --", "\n", " ", "true", "*", "24h", "games", "eip155:10", "name=eq.Harbor", "id=in.(a,b)", "is_public=is.true",
    "00000000-0000-0000-0000-000000000000", "00000000-0000-4000-8000-00000000000g", "9223372036854775808", "town", "spaces", "fidgets", "users",
    "a@b.example", "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20", "text/plain", "text/html; charset=utf-8"};

/* A text: absent, hostile, an id, what a call returned, or bytes of the input; seldom one with an impossible address or length. */
static tsq_str draw_text(void) {
    const unsigned way = draw();
    if (way < 16) {
        return absent;
    }
    if (way < 120) {
        return lent_text(hostile[below(COUNT(hostile))]);
    }
    if (way < 140) {
        return lent_text(ids[below(ids_known)]);
    }
    if (way < 160) {
        const tsq_str view = tsq_string_view(PICK(string));
        return view.ptr == NULL ? absent : lent(view.ptr, view.len);
    }
    if (way < 168) {
        tsq_str text = absent;
        text.len = draw();
        is_refused = is_refused || text.len > 0;
        return text;
    }
    if (way < 172) {
        tsq_str text = lent_text("x");
        text.len = SIZE_MAX - draw();
        is_refused = 1;
        return text;
    }
    if (way < 176) {
        /* Longer than most limits. */
        const size_t length = (size_t)1 << below(13);
        tsq_str text;
        text.ptr = (const char *)memset(lend(NULL, length), 'n', length);
        text.len = length;
        return text;
    }
    {
        size_t length = below(64);
        length = length < input_left ? length : input_left;
        const tsq_str text = lent((const char *)input, length);
        input += length;
        input_left -= length;
        return text;
    }
}

/* One of the usual texts seven times in eight. */
static tsq_str usual(const char *const *texts, size_t count) {
    const unsigned way = draw();
    return way < 224 ? lent_text(texts[way % count]) : draw_text();
}

#define USUAL(texts) usual(texts, COUNT(texts))

static tsq_str draw_id(void) {
    const unsigned way = draw();
    return way < 208 ? lent_text(ids[way % ids_known]) : draw_text();
}

/* What an earlier call returned, three times in four: a token, a claim, a signed file, a cursor. */
static tsq_str draw_returned(void) {
    const tsq_str view = draw() < 192 ? tsq_string_view(PICK(string)) : absent;
    return view.ptr == NULL ? draw_text() : lent(view.ptr, view.len);
}

static tsq_str draw_json(void) {
    static const char *const texts[] = {"{}", "[1,2.5,\"x\"]", "{\"x\":1,\"y\":{\"z\":null}}", "null"};
    return USUAL(texts);
}

static tsq_str draw_bucket(void) {
    static const char *const texts[] = {"assets", "spaces", "private", "open", "closed", "assets"};
    return USUAL(texts);
}

/* A path: of few files, or in the folder of an id. */
static tsq_str draw_path(void) {
    static const char *const texts[] = {"a", "b/c", "images/x.png", "a", "notes/a.txt"};
    static const char *const names[] = {"tabOrder", "tabs/x", "homebase", "assets/x.svg"};
    const unsigned way = draw();
    char text[96];
    if (way < 160) {
        return lent_text(texts[way % COUNT(texts)]);
    }
    if (way < 224) {
        const char *id = ids[below(ids_known)];
        snprintf(text, sizeof text, "%s/%s", id, names[way % COUNT(names)]);
        return lent_text(text);
    }
    return draw_text();
}

/* A number: small or at an edge. */
static uint64_t draw_number(void) {
    static const uint64_t edges[] = {0, 1, 999, 1000, 1001, 65535, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    const unsigned way = draw();
    return way < 128 ? way % 32 : edges[way % COUNT(edges)];
}

static uint32_t draw_limit(void) {
    const unsigned way = draw();
    return way < 192 ? 1 + way % 20 : (uint32_t)draw_number();
}

/* The bytes of a file: of the input, or more than inline_file_limit. */
static tsq_bytes draw_bytes(void) {
    tsq_bytes bytes;
    const unsigned way = draw();
    if (way < 16) {
        bytes.len = 70000;
        bytes.ptr = (const uint8_t *)memset(lend(NULL, bytes.len), (int)way, bytes.len);
    } else if (way < 24) {
        bytes.len = way % 3;
        bytes.ptr = NULL;
        is_refused = is_refused || bytes.len > 0;
    } else {
        const tsq_str text = draw_text();
        bytes.ptr = (const uint8_t *)text.ptr;
        bytes.len = text.len;
    }
    return bytes;
}

/* The arguments with `size` as their first member: of the right size two times in three. A wrong size must be refused, as must a member
 * behind those that the library knows, unless it is 0. */
static void *draw_input(const void *value, size_t size) {
    const unsigned way = draw();
    const size_t wrong[] = {1, sizeof(size_t), size - sizeof(size_t), size - 1, size + 1, 4096 + sizeof(size_t), SIZE_MAX};
    size_t given = size, held = size;
    uint8_t *bytes;
    if (way >= 255) {
        is_refused = 1;
        return NULL;
    }
    if (way >= 244) {
        given = wrong[way % COUNT(wrong)];
        is_refused = 1;
    } else if (way >= 208) {
        given = held = size + sizeof(size_t) * (1 + way % 8);
    } else if (way >= 170) {
        given = 0;
    }
    bytes = (uint8_t *)lend(NULL, held);
    memcpy(bytes, value, size);
    memcpy(bytes, &given, sizeof given);
    if (way >= 232 && way < 244) {
        bytes[held - 1] = 1;
        is_refused = 1;
    }
    return bytes;
}

#define INPUT(name, value) ((tsq_##name *)draw_input(&(value), sizeof(tsq_##name)))

/* Optional inputs: NULL every other time. */
static void *draw_optional_input(const void *value, size_t size) {
    return draw() % 2 == 0 ? NULL : draw_input(value, size);
}

#define OPTIONAL_INPUT(name, value) ((tsq_##name *)draw_optional_input(&(value), sizeof(tsq_##name)))

/* Where options are NULL, what they point at is not read. */
#define DRAW_OPTIONS(name, values, options)                                 \
    const int was_refused_ = is_refused;                                \
    const tsq_##name values = draw_##name();                            \
    const tsq_##name *options = OPTIONAL_INPUT(name, values);           \
    is_refused = options == NULL ? was_refused_ : is_refused

/* The size of the items of an array, which is seldom wrong. */
static size_t draw_item_size(size_t size) {
    const size_t wrong[] = {0, 1, 8, size - 8, size - 1, SIZE_MAX};
    const unsigned way = draw();
    is_refused = is_refused || way >= 240;
    return way < 240 ? size : wrong[way % COUNT(wrong)];
}

/* Any number as a value of an enum of the library, which reads it as a number. */
static void draw_enum(void *value, size_t known) {
    const unsigned way = draw();
    const unsigned number = way < 248 ? way % (unsigned)known : way - 247;
    memcpy(value, &number, sizeof number);
}

/* A bool is any byte. */
static void draw_bool(void *value) {
    const uint8_t byte = (uint8_t)draw();
    memcpy(value, &byte, 1);
}

/* A column of a patch. A value that the patch keeps or clears is not read. */
static void draw_change(tsq_str_change *change) {
    const int was_refused = is_refused;
    draw_enum(&change->change, 3);
    change->value = draw() < 128 ? lent_text("{}") : draw_text();
    is_refused = was_refused || (is_refused && change->change == TSQ_SET);
}

/* An array of at most four texts. */
static const tsq_str *draw_texts(size_t *count, const char *const *texts, size_t known) {
    tsq_str drawn[4];
    *count = below(COUNT(drawn) + 1);
    for (size_t i = 0; i < *count; i++) {
        drawn[i] = usual(texts, known);
    }
    if (*count == 0 && draw() % 2 == 0) {
        return NULL;
    }
    return (const tsq_str *)lend(drawn, sizeof drawn[0] * *count);
}

#endif
