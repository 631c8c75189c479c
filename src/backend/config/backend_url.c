#include "backend/config/backend_url.h"

#include "io/tls.h"
#include "util/alloc.h"
#include "util/span.h"
#include "util/text.h"

#include <stdlib.h>

enum { DB_MAX = 1000000, PORT_MAX = 65535 };

/* A copy with %xx replaced; NULL: one is malformed, or there is a NUL. */
static char *decode_percent(struct span text)
{
    char *copy = xmemdup0(text.ptr, text.len);

    if (memchr(text.ptr, '\0', text.len) != NULL || !parse_percent(copy)) {
        free(copy);
        return NULL;
    }
    return copy;
}

static bool parse_db(struct span text, struct backend_url *url)
{
    uint64_t db;

    if (!parse_u64(text, DB_MAX, &db)) {
        return false;
    }
    url->db = (unsigned)db;
    return true;
}

static const char *parse_user(struct span text, struct backend_url *url)
{
    struct span user;

    bool has_password = span_cut(&text, ':', &user);

    if (has_password) {
        url->password = decode_percent(text);
    } else {
        user = text;
    }
    if (user.len != 0) {
        url->user = decode_percent(user);
    }
    if ((has_password && url->password == NULL) ||
        (user.len != 0 && url->user == NULL)) {
        return "a % in user or password is followed by two hex digits, not 00";
    }
    if (has_password && url->password[0] == '\0') {
        return "the password is empty";
    }
    return has_password || user.len != 0 ? NULL : "before the @ comes a user";
}

static const char *parse_host(struct span text, struct backend_url *url)
{
    struct span host;
    struct span port = SPAN("6379");
    uint64_t number;

    if (span_starts(text, SPAN("["))) {
        if (!span_cut(&text, ']', &host)) {
            return "an IPv6 address needs a closing ]";
        }
        host = span_of(host.ptr + 1, host.len - 1);
        if (text.len != 0 && text.ptr[0] != ':') {
            return "after ] comes :port";
        }
        if (text.len != 0) {
            port = span_of(text.ptr + 1, text.len - 1);
        }
    } else if (span_cut(&text, ':', &host)) {
        port = text;
    } else {
        host = text;
    }
    if (host.len == 0) {
        return "the host is missing";
    }
    if (memchr(host.ptr, '\0', host.len) != NULL) {
        return "the host is malformed";
    }
    if (!parse_u64(port, PORT_MAX, &number) || number == 0) {
        return "the port is a number from 1 to 65535";
    }
    url->host = xmemdup0(host.ptr, host.len);
    url->port = xmemdup0(port.ptr, port.len);
    return NULL;
}

static const char *parse_tcp(struct span rest, struct backend_url *url)
{
    struct span part;
    const char *err = NULL;

    if (span_cut_last(&rest, '@', &part)) {
        err = parse_user(part, url);
    }
    if (err == NULL && span_cut(&rest, '/', &part)) {
        if (rest.len != 0 && !parse_db(rest, url)) {
            return "the database is a number: redis://host:port/db";
        }
        rest = part;
    }
    return err == NULL ? parse_host(rest, url) : err;
}

static const char *parse_unix(struct span rest, struct backend_url *url)
{
    struct span path = rest, login;
    const char *err = NULL;

    if (!span_starts(rest, SPAN("/")) && span_cut(&rest, '@', &login)) {
        err = parse_user(login, url);
        path = rest;
    }
    if (err != NULL) {
        return err;
    }
    if (span_cut(&rest, '?', &path) &&
        (!span_starts(rest, SPAN("db=")) ||
         !parse_db(span_of(rest.ptr + 3, rest.len - 3), url))) {
        return "after ? only db=number is known";
    }
    if (path.len < 2 || path.ptr[0] != '/') {
        return "the path is absolute: unix:///path, unix://user:password@/path";
    }
    url->unix_path = xmemdup0(path.ptr, path.len);
    return NULL;
}

bool backend_url_parse(const char *text, struct backend_url *ret, const char **reterr)
{
    struct backend_url url = { 0 };
    struct span all = span_str(text);
    const char *err = "it begins with redis://, rediss:// or unix://";

    if (span_starts(all, SPAN("redis://"))) {
        err = parse_tcp(span_of(text + 8, all.len - 8), &url);
    } else if (span_starts(all, SPAN("unix://"))) {
        err = parse_unix(span_of(text + 7, all.len - 7), &url);
    } else if (span_starts(all, SPAN("rediss://"))) {
        url.wants_tls = true;
        err = parse_tcp(span_of(text + 9, all.len - 9), &url);
    }
    if (err != NULL) {
        backend_url_fini(&url);
        *reterr = err;
        return false;
    }
    *ret = url;
    return true;
}

void backend_url_fini(struct backend_url *url)
{
    free(url->unix_path);
    free(url->host);
    free(url->port);
    free(url->user);
    free(url->password);
    tls_unref(url->tls);
    *url = (struct backend_url){ 0 };
}

static char *copy_string(const char *text)
{
    return text == NULL ? NULL : xstrdup(text);
}

void backend_url_copy(struct backend_url *ret, const struct backend_url *url)
{
    *ret = (struct backend_url){
        .unix_path = copy_string(url->unix_path),
        .host = copy_string(url->host),
        .port = copy_string(url->port),
        .user = copy_string(url->user),
        .password = copy_string(url->password),
        .db = url->db,
        .wants_tls = url->wants_tls,
        .tls = url->tls == NULL ? NULL : tls_ref(url->tls),
    };
}

void backend_url_set_server(struct backend_url *url, struct span host, struct span port)
{
    char *new_host = xmemdup0(host.ptr, host.len);
    char *new_port = xmemdup0(port.ptr, port.len);

    free(url->host);
    free(url->port);
    url->host = new_host;
    url->port = new_port;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool backend_url_set_login(struct backend_url *url, const struct backend_url *from)
{
    if (is_same_text(url->user, from->user) &&
        is_same_text(url->password, from->password)) {
        return false;
    }
    free(url->user);
    free(url->password);
    url->user = copy_string(from->user);
    url->password = copy_string(from->password);
    return true;
}

void backend_url_set_tls(struct backend_url *url, struct tls *tls)
{
    if (url->wants_tls) {
        tls_unref(url->tls);
        url->tls = tls_ref(tls);
    }
}
