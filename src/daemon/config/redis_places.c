#include "daemon/files.h"
#include "daemon/server_state.h"
#include "util/alloc.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PASSWORD_MAX = 512, FILE_MAX = 4096 };

static bool refuse_file(char *reterr, size_t room, const char *path, const char *why)
{
    (void)snprintf(reterr, room, "redis-password-file %s: %s", path, why);
    return false;
}

/* The first line; to be freed. */
static bool read_password(const char *path, char **ret, char *reterr, size_t room)
{
    struct buf text = { 0 };
    int err = file_read(path, FILE_MAX, &text, NULL);
    struct span rest = buf_span(&text), line = span_next(&rest, '\n');
    const char *why = NULL;

    if (line.len != 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    if (err != 0) {
        why = strerror(err);
    } else if (line.len == 0) {
        why = "the first line has to be the password, and is empty";
    } else if (line.len > PASSWORD_MAX) {
        why = "the first line has to be the password, and has more than 512 bytes";
    } else if (memchr(line.ptr, '\0', line.len) != NULL) {
        why = "there is a NUL in the password";
    } else {
        *ret = xmemdup0(line.ptr, line.len);
    }
    buf_reset(&text);
    return why == NULL || refuse_file(reterr, room, path, why);
}

bool redis_places_read(const struct config *c, struct backend_config *ret, char *reterr,
                       size_t room)
{
    const char *path = c->redis_password_file, *mistake = NULL;
    char *password = NULL;
    bool ok;

    if (path[0] != '\0' && !read_password(path, &password, reterr, room)) {
        return false;
    }
    ok = backend_config_parse(c->redis, ret, &mistake);
    if (ok && !backend_config_set_password(ret, password, &mistake)) {
        backend_config_fini(ret);
        ok = false;
    }
    if (!ok) {
        (void)snprintf(reterr, room, "redis: %s", mistake);
    }
    free(password);
    return ok;
}

bool redis_places_same(const char *a, const char *b)
{
    struct backend_config one = { 0 }, other = { 0 };
    const char *mistake;
    bool same = backend_config_parse(a, &one, &mistake) &&
                backend_config_parse(b, &other, &mistake) &&
                backend_config_same_places(&one, &other);

    backend_config_fini(&one);
    backend_config_fini(&other);
    return same;
}

void redis_places_log_in(struct server *s)
{
    char err[CONFIG_ERROR_MAX];
    struct backend_config places;

    if (s->embedded != NULL) {
        return;
    }
    if (!redis_places_read(&s->config, &places, err, sizeof(err))) {
        log_error("server", "%s: the passwords stay as they are", err);
        return;
    }
    store_set_login(s->store, &places);
    backend_config_fini(&places);
}
