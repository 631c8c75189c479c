#include "support/scenario.h"

#include "support/runner.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MAX = 16000, VARS_MAX = 200, ROWS_MAX = 64, DEPTH_MAX = 8, PARAMS_MAX = 8 };

/* --- the file ------------------------------------------------------------------- */

struct line {
    int number, indent;
    char *text; /* without indentation */
};

static const char *path;
static struct line *lines;
static size_t line_count;
static int running_line; /* or that is read */
static bool running;     /* a test does */

/* One scenario, with one row of its tables. */
struct scn_case {
    size_t head, row;
    TTest test;
    struct test_entry entry;
};

static struct scn_case *cases;
static size_t case_count;

/* Whatever fails, also in a helper in C, is reported at the line of the scenario: the
 * program is linked with --wrap for this. */
void real_failed(const char *file, int line, const char *expr, const char *msg,
                 ...) __asm__("__real__ck_assert_failed") __attribute__((noreturn));
void wrap_failed(const char *file, int line, const char *expr, const char *msg,
                 ...) __asm__("__wrap__ck_assert_failed")
    __attribute__((noreturn, format(printf, 4, 5)));

static char row_text[SCN_VALUE_MAX]; /* of the running case's tables; "" without any */

static void fail_here(const char *text) __attribute__((noreturn));
static void fail_here(const char *text)
{
    if (!running) {
        (void)fprintf(stderr, "%s:%d: %s\n", path, running_line, text);
        exit(EXIT_FAILURE);
    }
    real_failed(path, running_line, "Failed", "%s:%d: %s%s", path, running_line, text,
                row_text);
}

void wrap_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
    char text[4000] = "";
    int len = 0;
    va_list ap;

    va_start(ap, msg);
    if (msg != NULL) {
        len = vsnprintf(text, sizeof text / 2, msg, ap);
    }
    va_end(ap);
    (void)snprintf(text + strlen(text), sizeof text / 2, "%s (%s:%d)",
                   len == 0 ? expr : "", file, line);
    fail_here(text);
}

void scn_fail(const char *fmt, ...)
{
    char text[4000];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fail_here(text);
}

static bool begins_with(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 && (text[len] == ' ' || text[len] == '\0');
}

/* Where a quote begins or ends. */
static bool is_quote(const char *text, size_t at)
{
    return text[at] == '"' && (at == 0 || text[at - 1] != '\\');
}

/* The length of the text before a comment. */
static size_t len_without_comment(const char *text)
{
    bool quoted = false;
    size_t len = 0;

    while (text[len] != '\0' &&
           (text[len] != '#' || quoted || (len > 0 && text[len - 1] != ' '))) {
        quoted = quoted != is_quote(text, len);
        len++;
    }
    return len;
}

static void add_line(char *text, int number)
{
    size_t len = len_without_comment(text);
    int indent = (int)strspn(text, " ");

    text[len] = '\0';
    while (len > 0 && isspace((unsigned char)text[len - 1])) {
        text[--len] = '\0';
    }
    if (len == 0) {
        return;
    }
    lines = realloc(lines, (line_count + 1) * sizeof *lines);
    lines[line_count++] = (struct line){ number, indent, text + indent };
}

/* The text lives as long as the program: the lines point into it. */
static void read_file(void)
{
    static char *text;
    size_t room = 0;
    int number = 0;
    FILE *file = fopen(path, "r");
    char *rest, *line;

    if (file == NULL || getdelim(&text, &room, '\0', file) < 0) {
        scn_fail("%s", file == NULL ? strerror(errno) : "it is empty");
    }
    (void)fclose(file);
    for (rest = text; (line = strsep(&rest, "\n")) != NULL;) {
        add_line(line, ++number);
    }
}

/* The first line after `at` that is not below it. */
static size_t end_of_block(size_t at)
{
    size_t end = at + 1;

    while (end < line_count && lines[end].indent > lines[at].indent) {
        end++;
    }
    return end;
}

/* The text of a line and those below it that continue it. */
static void join_block(size_t at, char *ret, size_t room)
{
    size_t len = 0;

    for (size_t i = at; i < end_of_block(at); i++) {
        len += (size_t)snprintf(ret + len, room - len, "%s%s", i == at ? "" : " ",
                                lines[i].text);
        if (len >= room) {
            scn_fail("line %d is too long", lines[i].number);
        }
    }
}

/* --- tables of rows ------------------------------------------------------------- */

/* `for $a / $b = v / w | x / y`, or each row on a line of its own. */
struct table {
    size_t row_count;
    const char *names;
    const char *rows[ROWS_MAX];
    char text[STEP_MAX];
};

/* Cuts `text` at each ` sep `; returns the number of parts, without blanks around. */
static size_t cut(char *text, char sep, const char **parts, size_t max)
{
    size_t count = 0;
    char *at = text;

    for (;;) {
        char *end = at;
        char *last;

        while (*end != '\0' && !(*end == sep && (end == text || end[-1] == ' ') &&
                                 (end[1] == ' ' || end[1] == '\0'))) {
            end++;
        }
        last = end;
        text = *end == '\0' ? NULL : end + 1;
        while (last > at && last[-1] == ' ') {
            last--;
        }
        *last = '\0';
        if (count == max) {
            scn_fail("more than %zu parts", max);
        }
        parts[count++] = at + strspn(at, " ");
        if (text == NULL) {
            return count;
        }
        at = text;
    }
}

static bool is_table(size_t at)
{
    return at < line_count && begins_with(lines[at].text, "for");
}

/* Each row begins a line of its own below. */
static void read_rows(size_t at, char *room, size_t len, struct table *ret)
{
    for (size_t i = at + 1; i < end_of_block(at); i = end_of_block(i)) {
        running_line = lines[i].number;
        if (ret->row_count == ROWS_MAX) {
            scn_fail("too many rows");
        }
        join_block(i, room, len);
        ret->rows[ret->row_count++] = room;
        len -= strlen(room) + 1;
        room += strlen(room) + 1;
    }
}

static void read_table(size_t at, struct table *ret)
{
    const char *line = lines[at].text;
    char *equals;
    size_t len = strlen(line);

    running_line = lines[at].number;
    ret->row_count = 0;
    ret->names = ret->text + strlen("for ");
    if (len > strlen("for =") && strcmp(line + len - strlen(" ="), " =") == 0) {
        (void)snprintf(ret->text, sizeof ret->text, "%s", line);
        ret->text[len - strlen(" =")] = '\0';
        read_rows(at, ret->text + len, sizeof ret->text - len, ret);
    } else {
        join_block(at, ret->text, sizeof ret->text);
        equals = strstr(ret->text, " =");
        if (equals == NULL) {
            scn_fail("`for $x = row | row`");
        }
        *equals = '\0';
        ret->row_count = cut(equals + strlen(" ="), '|', ret->rows, ROWS_MAX);
    }
    if (ret->row_count == 0) {
        scn_fail("`for` without a row");
    }
}

/* --- what $names stand for ------------------------------------------------------ */

static struct {
    char name[SCN_NAME_MAX];
    char value[SCN_VALUE_MAX];
} vars[VARS_MAX];
static size_t var_count;

/* Its place, or that of a new one. */
static size_t find_var(const char *name)
{
    size_t i = 0;

    while (i < var_count && strcmp(vars[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void bind(const char *name, const char *value)
{
    size_t i = find_var(name);

    if (i == VARS_MAX || strlen(value) >= SCN_VALUE_MAX) {
        scn_fail("$%s: no room", name);
    }
    var_count += i == var_count ? 1 : 0;
    (void)snprintf(vars[i].name, sizeof vars[i].name, "%s", name);
    (void)snprintf(vars[i].value, sizeof vars[i].value, "%s", value);
}

static void unbind(const char *name)
{
    size_t i = find_var(name);

    if (i < var_count) {
        vars[i] = vars[--var_count];
    }
}

static bool look_up(const char *name, char ret[SCN_VALUE_MAX])
{
    size_t i = find_var(name);

    if (i < var_count) {
        memcpy(ret, vars[i].value, SCN_VALUE_MAX);
        return true;
    }
    return scn_stage.look_up != NULL && scn_stage.look_up(name, ret);
}

/* `a`, or `a.0`. */
static bool is_client(const char *name)
{
    char stem[SCN_NAME_MAX];

    (void)snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "."), name);
    return scn_stage.is_client != NULL && scn_stage.is_client(stem);
}

static size_t name_len(const char *text)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || text[len] == '_' ||
           (text[len] == '.' && isdigit((unsigned char)text[len + 1]))) {
        len++;
    }
    return len;
}

/* `$t+1`, `$t-1`, `$t+$u`, where they are numbers. Returns how much of `text` was used.
 */
static size_t add(char value[SCN_VALUE_MAX], const char *text)
{
    char name[SCN_NAME_MAX], other[SCN_VALUE_MAX];
    char *end;
    long long base = strtoll(value, &end, 10);
    size_t used;

    if ((*text != '+' && *text != '-') || *value == '\0' || *end != '\0') {
        return 0;
    }
    used = 1 + strspn(text + 1, "0123456789");
    (void)snprintf(other, sizeof other, "%.*s", (int)used - 1, text + 1);
    if (text[1] == '$') {
        used = 2 + name_len(text + 2);
        (void)snprintf(name, sizeof name, "%.*s", (int)used - 2, text + 2);
        if (!look_up(name, other)) {
            return 0;
        }
    }
    if (*other == '\0') {
        return 0;
    }
    base += (*text == '+' ? 1 : -1) * strtoll(other, NULL, 10);
    (void)snprintf(value, SCN_VALUE_MAX, "%lld", base);
    return used;
}

/* Puts values in the place of names; what is not bound yet stays. A value may have
 * names in it. */
static void substitute(const char *text, char *ret, size_t room, int depth)
{
    size_t at = 0;

    while (*text != '\0') {
        char name[SCN_NAME_MAX], value[SCN_VALUE_MAX];
        size_t len = *text == '$' ? name_len(text + 1) : 0;

        (void)snprintf(name, sizeof name, "%.*s", (int)len, text + 1);
        if (len > 0 && len < SCN_NAME_MAX && look_up(name, value)) {
            text += 1 + len;
            text += add(value, text);
            if (depth == DEPTH_MAX) {
                scn_fail("$%s stands for itself", name);
            }
            substitute(value, ret + at, room - at, depth + 1);
            at += strlen(ret + at);
        } else {
            ret[at++] = *text++;
        }
        if (at + 1 >= room) {
            scn_fail("too long: %.100s", text);
        }
    }
    ret[at] = '\0';
}

/* --- words ---------------------------------------------------------------------- */

/* The words of a line, or of a part of one between `;`. */
struct step {
    size_t count;
    const char *words[SCN_WORDS_MAX];
    bool quoted[SCN_WORDS_MAX];
    char room[STEP_MAX]; /* the words are here */
    size_t used;
};

static void add_word(struct step *step, const char *word, size_t len, bool quoted)
{
    char *at = step->room + step->used;

    if (step->count == SCN_WORDS_MAX || step->used + len + 1 > sizeof step->room) {
        scn_fail("too many words");
    }
    memcpy(at, word, len);
    at[len] = '\0';
    step->used += len + 1;
    step->quoted[step->count] = quoted;
    step->words[step->count++] = at;
}

/* `w1..w9` is nine words. */
static bool add_range(struct step *step, const char *word, size_t len)
{
    char stem[SCN_NAME_MAX], ending[2] = "", last_stem[SCN_NAME_MAX];
    char text[2 * SCN_NAME_MAX];
    unsigned from, to;

    if (len >= sizeof text) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)len, word);
    if (sscanf(text, "%39[a-z]%u..%39[a-z]%u%1[:]", stem, &from, last_stem, &to,
               ending) < 4) {
        return false;
    }
    if (strcmp(stem, last_stem) != 0 || from > to) {
        scn_fail("%s is no range", text);
    }
    for (unsigned i = from; i <= to; i++) {
        len = (size_t)snprintf(text, sizeof text, "%s%u%s", stem, i,
                               i == to ? ending : "");
        add_word(step, text, len, false);
    }
    return true;
}

/* Adds the text in quotes to a word; \r \n \" \\ and \xHH are bytes. Returns its end.
 */
static const char *copy_quoted(const char *text, char word[STEP_MAX], size_t *len)
{
    for (; *text != '"'; text++) {
        static const char ESCAPES[] = "rn\"\\";
        static const char MEANS[] = "\r\n\"\\";
        const char *escape;
        unsigned byte;

        if (*text == '\0') {
            scn_fail("a quote is not closed");
        }
        if (*text != '\\') {
            word[(*len)++] = *text;
        } else if (sscanf(text, "\\x%2x", &byte) == 1) {
            word[(*len)++] = (char)byte;
            text += 3;
        } else {
            escape = strchr(ESCAPES, *++text);
            if (*text == '\0' || escape == NULL) {
                scn_fail("no such escape in quotes");
            }
            word[(*len)++] = MEANS[escape - ESCAPES];
        }
    }
    return text + 1;
}

/* A word in quotes. Returns its end. */
static const char *add_quoted(struct step *step, const char *text)
{
    char word[STEP_MAX];
    size_t len = 0;

    text = copy_quoted(text, word, &len);
    add_word(step, word, len, true);
    return text;
}

/* Copies what stands before the next `;`. Returns what comes after that; NULL: it was
 * the last. */
static const char *next_part(const char *text, char *ret, size_t room)
{
    bool quoted = false;
    size_t len = 0;

    for (; text[len] != '\0' && (quoted || text[len] != ';'); len++) {
        quoted = quoted != is_quote(text, len);
    }
    (void)snprintf(ret, room, "%.*s", (int)len, text);
    return text[len] == '\0' ? NULL : text + len + 1;
}

/* A word may have quotes inside, as `key="two words"` has. */
static size_t word_len(const char *text)
{
    size_t len = 0;

    for (bool quoted = false; text[len] != '\0' && (quoted || text[len] != ' ');
         len++) {
        quoted = quoted != is_quote(text, len);
    }
    return len;
}

/* Adds the word without such quotes. */
static void add_bare(struct step *step, const char *text, size_t len)
{
    char word[STEP_MAX];
    size_t count = 0;

    for (const char *end = text + len; text < end;) {
        if (*text == '"') {
            text = copy_quoted(text + 1, word, &count);
        } else {
            word[count++] = *text++;
        }
    }
    add_word(step, word, count, false);
}

static void read_step(const char *text, struct step *ret)
{
    ret->count = ret->used = 0;
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        size_t len;

        if (*text == '"') {
            text = add_quoted(ret, text + 1);
            continue;
        }
        len = word_len(text);
        if (!add_range(ret, text, len)) {
            add_bare(ret, text, len);
        }
        text += len;
    }
}

const char *scn_word(const struct scn_words *words, size_t i)
{
    if (i >= words->count) {
        scn_fail("a word is missing at the end");
    }
    return words->at[i];
}

int64_t scn_number(const struct scn_words *words, size_t i)
{
    const char *word = scn_word(words, i);
    char *end;
    int64_t number = strtoll(word, &end, 10);

    if (*word == '\0' || *end != '\0') {
        scn_fail("'%s' is no number", word);
    }
    return number;
}

int64_t scn_number_or(const struct scn_words *words, size_t i, int64_t otherwise)
{
    return i < words->count ? scn_number(words, i) : otherwise;
}

const char *scn_option(const char *word, const char *key)
{
    size_t len = strlen(key);

    return strncmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

/* --- answers -------------------------------------------------------------------- */

void scn_int(struct value *ret, int64_t number)
{
    value_fini(ret);
    ret->type = VALUE_INT;
    ret->integer = number;
}

__attribute__((format(printf, 2, 0))) static void set_text(struct value *ret,
                                                           const char *fmt, va_list ap)
{
    ret->type = VALUE_TEXT;
    if (vasprintf(&ret->text, fmt, ap) < 0) {
        abort();
    }
    ret->len = strlen(ret->text);
}

void scn_text(struct value *ret, const char *fmt, ...)
{
    va_list ap;

    value_fini(ret);
    va_start(ap, fmt);
    set_text(ret, fmt, ap);
    va_end(ap);
}

void scn_add_int(struct value *list, int64_t number)
{
    list->type = VALUE_LIST;
    list->items = realloc(list->items, (list->count + 1) * sizeof *list->items);
    memset(&list->items[list->count], 0, sizeof *list->items);
    scn_int(&list->items[list->count++], number);
}

static struct value *add_pair(struct value *map, const char *key)
{
    struct value *pair;

    map->type = VALUE_MAP;
    map->items = realloc(map->items, (map->count + 2) * sizeof *map->items);
    pair = &map->items[map->count];
    map->count += 2;
    memset(pair, 0, 2 * sizeof *pair);
    scn_text(&pair[0], "%s", key);
    return &pair[1];
}

void scn_put_int(struct value *map, const char *key, int64_t number)
{
    scn_int(add_pair(map, key), number);
}

void scn_put_text(struct value *map, const char *key, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_text(add_pair(map, key), fmt, ap);
    va_end(ap);
}

void scn_set_field(void *to, const struct scn_field *fields, size_t count,
                   const char *word)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = scn_option(word, fields[i].name);
        char *end;
        int64_t number;

        if (value == NULL) {
            continue;
        }
        number = strtoll(value, &end, 10);
        if (*value == '\0' || *end != '\0') {
            scn_fail("'%s' is no number", value);
        }
        memcpy((char *)to + fields[i].offset, &number,
               fields[i].size); /* low end first */
        return;
    }
    scn_fail("there is no setting '%s'", word);
}

void scn_put_fields(struct value *map, const void *from, const struct scn_field *fields,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t number = 0;

        memcpy(&number, (const char *)from + fields[i].offset, fields[i].size);
        scn_put_int(map, fields[i].name, number);
    }
}

/* --- what is expected ----------------------------------------------------------- */

static void print_scalar(const struct value *v, char *ret, size_t room)
{
    if (v == NULL) {
        (void)snprintf(ret, room, "nil");
    } else if (v->type == VALUE_TEXT) {
        (void)snprintf(ret, room, "%s", v->text);
    } else {
        value_print(v, ret, room);
    }
}

static bool are_tokens(const struct value *v)
{
    bool all = v->type == VALUE_LIST && v->count > 0;

    for (size_t i = 0; i < v->count; i++) {
        all = all && v->items[i].type == VALUE_INT && v->items[i].integer > 0;
    }
    return all;
}

/* `*` stands for any text. */
static bool fits(const char *pattern, const char *text)
{
    for (; *pattern != '*'; pattern++, text++) {
        if (*pattern != *text) {
            return false;
        }
        if (*text == '\0') {
            return true;
        }
    }
    for (;; text++) {
        if (fits(pattern + 1, text)) {
            return true;
        }
        if (*text == '\0') {
            return false;
        }
    }
}

/* What is not there is nothing that anybody expects. */
static bool compare(const struct value *v, const char *op, const char *want,
                    bool quoted)
{
    char text[STEP_MAX];
    char *end, *want_end;
    long long number, bound;

    if (v == NULL) {
        return false;
    }
    print_scalar(v, text, sizeof text);
    if (strcmp(op, "=") == 0 || strcmp(op, "!=") == 0) {
        bool same;

        if (v->type == VALUE_ERROR) {
            same = strncmp(text, want, strlen(want)) == 0 && *want == '-';
            same = same || (strcmp(want, "*") == 0 && !quoted);
        } else if (!quoted && strcmp(want, "token") == 0 && v->type == VALUE_INT) {
            same = v->integer > 0;
        } else if (!quoted && strcmp(want, "tokens") == 0) {
            same = are_tokens(v);
        } else if (!quoted && strcmp(want, "nil") == 0) {
            same = v->type == VALUE_NIL;
        } else {
            same = quoted ? strcmp(want, text) == 0 : fits(want, text);
        }
        return same == (*op == '=');
    }
    number = strtoll(text, &end, 10);
    bound = strtoll(want, &want_end, 10);
    if (*want == '\0' || *want_end != '\0') {
        scn_fail("'%s' is no number to compare with", want);
    }
    if (*text == '\0' || *end != '\0') {
        return false;
    }
    return number == bound ? op[1] == '=' : (number < bound) == (*op == '<');
}

/* The value at `a.0.b`; NULL: there is none. */
static const struct value *at_path(const struct value *v, const char *at,
                                   struct value *counted)
{
    while (*at != '\0' && v != NULL) {
        char key[SCN_NAME_MAX];
        size_t len = strcspn(at, ".");
        const struct value *next;

        (void)snprintf(key, sizeof key, "%.*s", (int)len, at);
        next = value_get(v, key);
        if (next == NULL && v->items != NULL && isdigit((unsigned char)*key)) {
            size_t i = strtoul(key, NULL, 10);

            next = i < v->count ? &v->items[i] : NULL;
        }
        if (next == NULL && strcmp(key, "count") == 0 && v->type != VALUE_NIL) {
            *counted =
                (struct value){ .type = VALUE_INT, .integer = (int64_t)v->count };
            next = counted;
        }
        v = next;
        at += len + (at[len] == '.');
    }
    return v;
}

/* A word of what is expected: `[path]op value` or a bare value. */
struct expected {
    char where[SCN_NAME_MAX * 2];
    char op[3];
    const char *want;
};

static void read_expected(const char *word, bool quoted, struct expected *ret)
{
    size_t len = quoted ? 0 : strcspn(word, "=!<>");
    size_t path_len = len;

    *ret = (struct expected){ .op = "=", .want = word };
    for (size_t i = 0; i < path_len; i++) {
        if (!isalnum((unsigned char)word[i]) && strchr("_.-", word[i]) == NULL) {
            return; /* the operator is part of a text */
        }
    }
    if (quoted || word[len] == '\0' || path_len >= sizeof ret->where ||
        (word[len] == '!' && word[len + 1] != '=')) {
        return;
    }
    (void)snprintf(ret->where, sizeof ret->where, "%.*s", (int)path_len, word);
    ret->op[0] = word[len++];
    if (ret->op[0] != '=' && word[len] == '=') {
        ret->op[1] = word[len++];
    }
    ret->want = word + len;
}

/* A client's number is no text of digits. */
static bool is_text_for_number(const struct value *v, const struct expected *e)
{
    char *end;

    (void)strtoll(e->want, &end, 10);
    return *e->want != '\0' && *end == '\0' && e->where[0] == '\0' && v != NULL &&
           (v->type == VALUE_TEXT || v->type == VALUE_STATUS);
}

/* `$t` takes the value. */
static bool binds(const struct expected *e, bool quoted)
{
    const char *name = quoted ? NULL : strchr(e->want, '$');

    if (name == NULL || name_len(name + 1) == 0) {
        return false;
    }
    if (name != e->want || name_len(name + 1) != strlen(name + 1) ||
        strcmp(e->op, "=") != 0) {
        scn_fail("%s is not bound", name);
    }
    if (is_client(name + 1)) {
        scn_fail("%s: that client was given no token", name);
    }
    return true;
}

static char mismatch[2 * STEP_MAX];

/* `said`: a client was told it. False: `mismatch` says what differs. */
static bool meets(const struct value *got, const struct step *step, size_t from,
                  bool said)
{
    size_t position = 0;

    for (size_t i = from; i < step->count; i++) {
        struct expected e;
        struct value counted;
        const struct value *v = got;

        read_expected(step->words[i], step->quoted[i], &e);
        if (e.where[0] != '\0') {
            v = at_path(got, e.where, &counted);
        } else if (*e.op == '<' && value_get(got, "<") != NULL) {
            v = value_get(got, "<");
        } else if (got->type == VALUE_MAP && value_get(got, "") != NULL) {
            v = value_get(got, "");
        } else if (got->items != NULL && strcmp(e.want, "*") != 0 &&
                   strcmp(e.want, "tokens") != 0) {
            v = position < got->count ? &got->items[position] : NULL;
            position++;
        }
        if (binds(&e, step->quoted[i])) {
            char text[STEP_MAX];

            print_scalar(v, text, sizeof text);
            if (v == NULL || v->type == VALUE_NIL || v->type == VALUE_ERROR) {
                (void)snprintf(mismatch, sizeof mismatch, "%s to be bound, got %s",
                               step->words[i], text);
                return false;
            }
            bind(e.want + 1, text);
        } else if (!compare(v, e.op, e.want, step->quoted[i]) ||
                   (said && !step->quoted[i] && is_text_for_number(v, &e))) {
            char whole[STEP_MAX / 2], part[STEP_MAX / 4];

            print_scalar(v, part, sizeof part);
            print_scalar(got, whole, sizeof whole);
            (void)snprintf(mismatch, sizeof mismatch, "expected %s, got %s%s%s%s%s",
                           step->words[i],
                           said && is_text_for_number(v, &e) ? "the text " : "", part,
                           v == got ? "" : " in ", v == got ? "" : whole,
                           v == NULL ? " (not there)" : "");
            return false;
        }
    }
    if (position > 0 && position != got->count) {
        (void)snprintf(mismatch, sizeof mismatch, "expected %zu items, got %zu",
                       position, got->count);
        return false;
    }
    return true;
}

/* --- steps ---------------------------------------------------------------------- */

static void run_block(size_t from, size_t end);

static const struct scn_verb *find_verb(const char *name)
{
    for (const struct scn_verb *verb = scn_stage.verbs; verb->name != NULL; verb++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }
    return NULL;
}

/* `define NAME $a $b`: its line, or line_count. */
static size_t find_definition(const char *name)
{
    for (size_t i = 0; i < line_count; i++) {
        if (lines[i].indent == 0 && begins_with(lines[i].text, "define") &&
            begins_with(lines[i].text + strlen("define "), name)) {
            return i;
        }
    }
    return line_count;
}

/* Its parameters stand for these words while its steps run, and then for what they
 * stood for before. */
static void run_definition(size_t at, const struct step *step)
{
    char before[PARAMS_MAX][SCN_VALUE_MAX];
    bool bound[PARAMS_MAX];
    struct step head;
    int line = running_line;

    read_step(lines[at].text, &head);
    if (head.count - 1 != step->count || step->count - 1 > PARAMS_MAX) {
        scn_fail("%s takes %zu words", head.words[1], head.count - 2);
    }
    for (size_t i = 0; i + 1 < step->count; i++) {
        const char *name = head.words[i + 2] + 1;
        size_t var = find_var(name);

        bound[i] = var < var_count;
        if (bound[i]) {
            memcpy(before[i], vars[var].value, sizeof before[i]);
        }
        bind(name, step->words[i + 1]);
    }
    run_block(at + 1, end_of_block(at));
    for (size_t i = 0; i + 1 < step->count; i++) {
        if (bound[i]) {
            bind(head.words[i + 2] + 1, before[i]);
        } else {
            unbind(head.words[i + 2] + 1);
        }
    }
    running_line = line;
}

/* Where a word is `->`, or the end. */
static size_t find_arrow(const struct step *step)
{
    size_t i = 0;

    while (i < step->count && (step->quoted[i] || strcmp(step->words[i], "->") != 0)) {
        i++;
    }
    return i;
}

/* Of clients, each by itself: says the words from `from` on, and is heard. */
static bool say_step(const struct step *step, size_t who_count, size_t from,
                     size_t arrow)
{
    struct scn_words words = { .count = arrow - from };
    bool met = true;

    memcpy(words.at, step->words + from, words.count * sizeof words.at[0]);
    for (size_t i = 0; i < who_count && met; i++) {
        struct value got = { .type = VALUE_NIL };
        struct scn_saying saying = { .who = step->words[i], .words = &words };

        if (words.count == 0 && scn_stage.is_client != NULL && !is_client(saying.who)) {
            scn_fail("there is no client '%s'", saying.who);
        }
        if (arrow < step->count) {
            saying.want = strcmp(step->words[step->count - 1], "...") == 0 ? SCN_SILENCE
                                                                           : SCN_REPLY;
        }
        scn_stage.say(&saying, &got);
        met = meets(&got, step, arrow < step->count ? arrow + 1 : arrow, true);
        value_fini(&got);
    }
    return met;
}

static bool verb_step(const struct scn_verb *verb, const struct step *step,
                      size_t arrow)
{
    struct scn_words words = { .count = arrow - 1 };
    struct value got = { .type = VALUE_NIL };
    bool met;

    if (words.count > verb->max_words) {
        scn_fail("%s takes at most %zu words", verb->name, verb->max_words);
    }
    memcpy(words.at, step->words + 1, words.count * sizeof words.at[0]);
    verb->run(&words, &got);
    met = meets(&got, step, arrow < step->count ? arrow + 1 : arrow, false);
    value_fini(&got);
    return met;
}

/* Runs one step. False: its answer is not the one that is expected. */
static bool run_step(struct step *step)
{
    size_t arrow = find_arrow(step);
    const struct scn_verb *verb;
    size_t definition, who_count = 0;

    if (arrow == 0 || arrow + 1 == step->count) {
        scn_fail("nothing stands %s `->`", arrow == 0 ? "before" : "behind");
    }
    for (size_t i = 0; i < arrow && who_count == 0; i++) {
        size_t len = strlen(step->words[i]);

        if (!step->quoted[i] && len > 1 && step->words[i][len - 1] == ':') {
            ((char *)step->words[i])[len - 1] = '\0';
            who_count = i + 1;
        }
    }
    for (size_t i = 0; i < step->count; i++) {
        if (*step->words[i] == '$' && i < arrow && !step->quoted[i]) {
            scn_fail("%s is not bound", step->words[i]);
        }
    }
    verb = find_verb(step->words[0]);
    if (verb != NULL) {
        return verb_step(verb, step, arrow);
    }
    if (who_count > 0) {
        return say_step(step, who_count, who_count, arrow);
    }
    definition = find_definition(step->words[0]);
    if (definition < line_count) {
        run_definition(definition, step);
        return true;
    }
    if (arrow == step->count) {
        scn_fail("'%s' is no verb of this stage", step->words[0]);
    }
    return say_step(step, arrow, arrow, arrow);
}

enum { AWAIT_MS = 10000 };

/* `within MS STEP`, `await STEP`, `until MS STEP` with a block below: again and again
 * until the step is met. The text is read anew for each look, as a step may bind names.
 */
static void run_patiently(const char *text, size_t block, size_t block_end)
{
    struct step *step = malloc(sizeof *step);
    uint64_t began = scn_stage.now();
    int line = running_line;

    for (;;) {
        char replaced[STEP_MAX];
        uint64_t ms = AWAIT_MS;
        size_t skipped = 1;

        substitute(text, replaced, sizeof replaced, 0);
        read_step(replaced, step);
        if (strcmp(step->words[0], "await") != 0) {
            ms = step->count > 2 ? strtoull(step->words[1], NULL, 10) : 0;
            skipped = 2;
        }
        if (ms == 0 || step->count == skipped) {
            scn_fail("'%s MS STEP'", step->words[0]);
        }
        step->count -= skipped;
        for (size_t i = 0; i < step->count; i++) {
            step->words[i] = step->words[i + skipped];
            step->quoted[i] = step->quoted[i + skipped];
        }
        if (find_arrow(step) == step->count) {
            scn_fail("without `->` nothing is waited for");
        }
        if (run_step(step)) {
            free(step);
            return;
        }
        if (scn_stage.now() - began >= ms) {
            scn_fail("after %" PRIu64 " ms: %s", ms, mismatch);
        }
        if (block < block_end) {
            run_block(block, block_end);
            running_line = line;
        }
        scn_stage.wait();
    }
}

/* Steps, some of which a name may stand for. */
static void run_steps(const char *text)
{
    struct step *step = malloc(sizeof *step);
    char part[STEP_MAX];

    while (text != NULL) {
        text = next_part(text, part, sizeof part);
        read_step(part, step);
        if (step->count > 0 && !run_step(step)) {
            scn_fail("%s", mismatch);
        }
    }
    free(step);
}

/* `let $x = text` */
static void run_let(const char *line)
{
    char text[STEP_MAX];
    char *equals;

    substitute(line + strlen("let $"), text, sizeof text, 0);
    equals = strstr(text, " =");
    if (equals == NULL) {
        scn_fail("'let $x = text'");
    }
    *equals = '\0';
    bind(text, equals + strlen(" =") + strspn(equals + strlen(" ="), " "));
}

static void run_line(size_t at)
{
    char text[STEP_MAX], part[STEP_MAX], replaced[STEP_MAX];
    const char *rest = text, *begin;

    join_block(at, text, sizeof text);
    while (rest != NULL) {
        rest = next_part(rest, part, sizeof part);
        begin = part + strspn(part, " ");
        if (begins_with(begin, "within") || begins_with(begin, "await")) {
            run_patiently(part, 0, 0);
        } else if (begins_with(begin, "let")) {
            run_let(begin);
        } else {
            substitute(part, replaced, sizeof replaced, 0);
            run_steps(replaced);
        }
    }
}

/* `repeat N` with $i from 0, `repeat FROM TO` with $i up to and with TO. */
static void run_repeat(size_t at)
{
    char text[STEP_MAX];
    struct step step;
    struct scn_words words = { 0 };
    int64_t from = 0, to;

    substitute(lines[at].text, text, sizeof text, 0);
    read_step(text, &step);
    words.count = step.count - 1;
    memcpy(words.at, step.words + 1, words.count * sizeof words.at[0]);
    to = scn_number(&words, 0) - 1;
    if (words.count > 1) {
        from = to + 1;
        to = scn_number(&words, 1);
    }
    if (words.count > 2 || to < from) {
        scn_fail("'repeat N', N above 0, or 'repeat FROM TO'");
    }
    for (int64_t i = from; i <= to; i++) {
        (void)snprintf(text, sizeof text, "%" PRId64, i);
        bind("i", text);
        run_block(at + 1, end_of_block(at));
    }
}

static void run_block(size_t from, size_t end)
{
    for (size_t at = from; at < end; at = end_of_block(at)) {
        running_line = lines[at].number;
        if (begins_with(lines[at].text, "repeat")) {
            run_repeat(at);
        } else if (begins_with(lines[at].text, "until")) {
            run_patiently(lines[at].text, at + 1, end_of_block(at));
        } else {
            run_line(at);
        }
    }
}

/* --- cases ---------------------------------------------------------------------- */

/* Binds the columns of row `row` of the table. */
static void bind_row(const struct table *table, size_t row)
{
    char names[STEP_MAX], values[STEP_MAX];
    const char *name[ROWS_MAX], *value[ROWS_MAX];
    size_t count, len;

    (void)snprintf(names, sizeof names, "%s", table->names);
    (void)snprintf(values, sizeof values, "%s", table->rows[row]);
    count = cut(names, '/', name, ROWS_MAX);
    if (cut(values, '/', value, ROWS_MAX) != count) {
        scn_fail("the row '%s' has not %zu parts", table->rows[row], count);
    }
    for (size_t i = 0; i < count; i++) {
        bind(name[i] + 1, value[i]);
    }
    len = strlen(row_text);
    (void)snprintf(row_text + len, sizeof row_text - len, " [%s = %s]", table->names,
                   table->rows[row]);
}

static void run_case(int index)
{
    const struct scn_case *c = &cases[index];
    size_t at = c->head + 1, row = c->row;
    static struct table table;

    running = true;
    running_line = lines[c->head].number;
    var_count = 0;
    row_text[0] = '\0';
    for (size_t i = 0; i < line_count; i = end_of_block(i)) {
        if (begins_with(lines[i].text, "let")) {
            running_line = lines[i].number;
            run_let(lines[i].text);
        }
    }
    for (; is_table(at); at = end_of_block(at)) {
        read_table(at, &table);
        running_line = lines[at].number;
        bind_row(&table, row % table.row_count);
        row /= table.row_count;
    }
    scn_stage.begin();
    run_block(at, end_of_block(c->head));
    running_line = lines[c->head].number;
    scn_stage.end();
}

/* The sentence as one word, as it stands in lists of tests. */
static char *test_name(const char *sentence)
{
    char *name = strdup(sentence);

    for (char *c = name; *c != '\0'; c++) {
        *c = *c == ' ' ? '_' : *c;
    }
    return name;
}

static void add_cases(size_t head)
{
    size_t rows = 1;
    static struct table table;

    for (size_t at = head + 1; is_table(at); at = end_of_block(at)) {
        read_table(at, &table);
        rows *= table.row_count;
    }
    cases = realloc(cases, (case_count + rows) * sizeof *cases);
    for (size_t row = 0; row < rows; row++) {
        cases[case_count++] = (struct scn_case){
            .head = head,
            .row = row,
            .test = { .name = test_name(lines[head].text + strlen("scenario ")),
                      .fn = run_case,
                      .file = path,
                      .line = lines[head].number },
        };
    }
}

/* The verb would run in its place. */
static void check_definition(size_t at)
{
    static struct step step;

    read_step(lines[at].text, &step);
    if (step.count > 1 && find_verb(step.words[1]) != NULL) {
        scn_fail("'%s' is a verb of this stage", step.words[1]);
    }
}

void test_collect(int argc, char **argv)
{
    static struct test_group group;
    static struct test_entry group_entry = { .group = &group };

    path = argc == 2 ? argv[1] : "a scenario";
    read_file();
    for (size_t at = 0; at < line_count; at = end_of_block(at)) {
        running_line = lines[at].number;
        if (begins_with(lines[at].text, "scenario")) {
            add_cases(at);
        } else if (begins_with(lines[at].text, "define")) {
            check_definition(at);
        } else if (!begins_with(lines[at].text, "let")) {
            scn_fail("`scenario`, `define` or `let`");
        }
    }
    group = (struct test_group){ .setup_once = scn_stage.start,
                                 .teardown_once = scn_stage.stop,
                                 .timeout_s = scn_stage.timeout_s };
    group_entry.file = path;
    runner_add(&group_entry);
    for (size_t i = 0; i < case_count; i++) {
        cases[i].entry = (struct test_entry){ .test = &cases[i].test,
                                              .first = (int)i,
                                              .times = 1,
                                              .file = path,
                                              .line = cases[i].test.line };
        runner_add(&cases[i].entry);
    }
}
