#include "latchctl/target.h"

#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/text.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

#define STRING_OF(number) #number
#define STRING(number) STRING_OF(number)

enum { PORT_MAX = 65535 };

void target_init(struct target *t)
{
    *t = (struct target){ 0 };
    t->host = xstrdup("127.0.0.1");
    t->port = xstrdup(STRING(LATCHD_DEFAULT_PORT));
}

void target_set_one(struct target *t)
{
    for (; t->more_count > 0; t->more_count--) {
        target_set(&t->more[t->more_count - 1].host, NULL);
        target_set(&t->more[t->more_count - 1].port, NULL);
    }
}

void target_fini(struct target *t)
{
    target_set_one(t);
    free(t->host);
    free(t->port);
    free(t->path);
    free(t->user);
    free(t->password);
    free(t->about);
    free(t->tls.sni);
    free(t->tls.ca_cert_file);
    free(t->tls.ca_cert_dir);
    free(t->tls.cert_file);
    free(t->tls.key_file);
    *t = (struct target){ 0 };
}

void target_set(char **field, const char *value)
{
    char *copy = value == NULL ? NULL : xstrdup(value);

    free(*field);
    *field = copy;
}

static const char *read_user(struct target *t, char *text)
{
    char *password = strchr(text, ':');

    if (password == NULL) {
        return parse_percent(text) ? (target_set(&t->user, text), NULL) : "a bad %";
    }
    *password++ = '\0';
    if (!parse_percent(text) || !parse_percent(password)) {
        return "a bad % in user or password";
    }
    target_set(&t->user, *text == '\0' ? NULL : text);
    target_set(&t->password, *password == '\0' ? NULL : password);
    return NULL;
}

/* Splits `host[:port]` or `[address][:port]`. *ret_port NULL: none was given. */
static const char *split_host(char *text, char **ret_host, char **ret_port)
{
    uint64_t number;

    *ret_port = NULL;
    if (*text == '[') {
        char *end = strchr(++text, ']');

        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return "an IPv6 address is written as [address]:port";
        }
        *ret_port = end[1] == ':' ? end + 2 : NULL;
        *end = '\0';
    } else if ((*ret_port = strchr(text, ':')) != NULL) {
        *(*ret_port)++ = '\0';
    }
    *ret_host = text;
    if (*ret_port != NULL &&
        (!parse_u64(span_str(*ret_port), PORT_MAX, &number) || number == 0)) {
        return "the port is a number from 1 to 65535";
    }
    return NULL;
}

static const char *add_host(struct target *t, char *text)
{
    struct target_host *h = &t->more[t->more_count];
    char *host, *port;
    const char *err;

    if (t->more_count == sizeof(t->more) / sizeof(t->more[0])) {
        return "these are more than 8 addresses";
    }
    err = split_host(text, &host, &port);
    if (err == NULL && *host == '\0') {
        return "an address between commas is empty";
    }
    if (err == NULL) {
        target_set(&h->host, host);
        target_set(&h->port, port == NULL ? STRING(LATCHD_DEFAULT_PORT) : port);
        t->more_count++;
    }
    return err;
}

static const char *read_hosts(struct target *t, char *text)
{
    char *more = strchr(text, ',');
    char *host, *port, *next;
    const char *err;

    if (more != NULL) {
        *more++ = '\0';
    }
    err = split_host(text, &host, &port);
    if (err == NULL && port != NULL) {
        target_set(&t->port, port);
    }
    if (err == NULL && *host != '\0') {
        target_set(&t->host, host);
    }
    for (; err == NULL && more != NULL; more = next) {
        next = strchr(more, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        err = add_host(t, more);
    }
    target_set(&t->path, NULL);
    return err;
}

static const char *read_tcp(struct target *t, char *rest)
{
    char *at = strrchr(rest, '@');
    const char *err = NULL;
    char *slash;

    if (at != NULL) {
        *at = '\0';
        err = read_user(t, rest);
        rest = at + 1;
    }
    slash = strchr(rest, '/');
    if (slash != NULL) {
        *slash++ = '\0';
        if (*slash != '\0' && strcmp(slash, "0") != 0) {
            return "latchd has the database 0 only";
        }
    }
    return err == NULL ? read_hosts(t, rest) : err;
}

bool target_set_url(struct target *t, const char *url, char *reterr, size_t room)
{
    static const char TCP[] = "redis://";
    static const char TLS[] = "rediss://";
    static const char UNIX[] = "unix://";
    const char *err;
    char *copy = xstrdup(url);

    t->tls.by_url = false;
    target_set_one(t);
    if (strncmp(url, TCP, strlen(TCP)) == 0) {
        err = read_tcp(t, copy + strlen(TCP));
    } else if (strncmp(url, TLS, strlen(TLS)) == 0) {
        t->tls.by_url = true;
        err = read_tcp(t, copy + strlen(TLS));
    } else if (strncmp(url, UNIX, strlen(UNIX)) == 0 && url[strlen(UNIX)] == '/') {
        err = parse_percent(copy + strlen(UNIX)) ? NULL : "a bad % in the path";
        target_set(&t->path, copy + strlen(UNIX));
    } else {
        err = "a URL is redis://[user:password@]host[:port][,host[:port] ...], "
              "rediss:// for TLS, or unix:///path";
    }
    free(copy);
    if (err != NULL) {
        (void)snprintf(reterr, room, "%s", err);
    }
    return err == NULL;
}

bool target_wants_tls(const struct target *t)
{
    return t->tls.by_option || t->tls.by_url;
}

static bool has_tls_options(const struct target_tls *tls)
{
    return tls->insecure || tls->sni != NULL || tls->ca_cert_file != NULL ||
           tls->ca_cert_dir != NULL || tls->cert_file != NULL || tls->key_file != NULL;
}

static const char *tls_mistake(const struct target *t)
{
    const struct target_tls *tls = &t->tls;

    if (!target_wants_tls(t)) {
        return has_tls_options(tls)
                   ? "--cacert, --cert and the like need --tls, or a rediss:// URL"
                   : NULL;
    }
    if (!tls_is_built()) {
        return "this latchctl was built without it";
    }
    if (t->path != NULL) {
        return "there is none on a unix socket";
    }
    if (tls->key_file != NULL && tls->cert_file == NULL) {
        return "--key is nothing without --cert";
    }
    if (tls->sni != NULL && (*tls->sni == '\0' || strlen(tls->sni) > TARGET_SNI_MAX)) {
        return "--sni: a name has 1 to 253 bytes";
    }
    return NULL;
}

bool target_check_tls(const struct target *t, char *reterr, size_t room)
{
    const char *mistake = tls_mistake(t);
    struct tls *tls;

    if (mistake != NULL) {
        (void)snprintf(reterr, room, "%s", mistake);
        return false;
    }
    if (!target_wants_tls(t)) {
        return true;
    }
    tls = target_read_tls(t, reterr, room);
    tls_unref(tls);
    return tls != NULL;
}

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

struct tls *target_read_tls(const struct target *t, char *reterr, size_t room)
{
    static const struct tls_names NAMES = { "--cert", "--key", "--cacert",
                                            "--cacertdir" };
    const struct tls_files files = {
        .names = &NAMES,
        .cert_file = or_empty(t->tls.cert_file),
        .key_file = or_empty(t->tls.key_file),
        .ca_cert_file = or_empty(t->tls.ca_cert_file),
        .ca_cert_dir = or_empty(t->tls.ca_cert_dir),
        .trust_anybody = t->tls.insecure,
    };

    return tls_new_client(&files, reterr, room);
}

const char *target_tls_name(const struct target *t, const struct target_address *to)
{
    return t->tls.sni != NULL ? t->tls.sni : to->host;
}

static bool resolve_path(struct target *t, char *reterr, size_t room)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&t->addresses[0].addr;
    size_t len = strlen(t->path);

    target_set(&t->about, t->path);
    *un = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (len >= sizeof(un->sun_path)) {
        (void)snprintf(reterr, room, "the path of the socket is too long");
        return false;
    }
    memcpy(un->sun_path, t->path, len);
    t->addresses[0].len = sizeof(*un);
    t->address_count = 1;
    return true;
}

/* Adds the addresses of one host. */
static bool resolve_host(struct target *t, const char *host, const char *port,
                         char *reterr, size_t room)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found;
    int err = getaddrinfo(host, port, &hints, &found);

    if (err != 0) {
        (void)snprintf(reterr, room, "%s: %s", host, gai_strerror(err));
        return false;
    }
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        struct target_address *to = &t->addresses[t->address_count];

        if (t->address_count < TARGET_ADDRESSES_MAX &&
            a->ai_addrlen <= sizeof(to->addr)) {
            memcpy(&to->addr, a->ai_addr, a->ai_addrlen);
            to->len = a->ai_addrlen;
            to->host = host;
            t->address_count++;
        }
    }
    freeaddrinfo(found);
    return true;
}

static void add_about(struct buf *about, const char *host, const char *port)
{
    buf_printf(about, strchr(host, ':') == NULL ? "%s%s:%s" : "%s[%s]:%s",
               buf_len(about) == 0 ? "" : ", ", host, port);
}

bool target_resolve(struct target *t, char *reterr, size_t room)
{
    struct buf about = { 0 };
    bool known;

    if (t->path != NULL) {
        return resolve_path(t, reterr, room);
    }
    t->address_count = 0;
    add_about(&about, t->host, t->port);
    known = resolve_host(t, t->host, t->port, reterr, room);
    for (size_t i = 0; i < t->more_count; i++) {
        const struct target_host *h = &t->more[i];

        add_about(&about, h->host, h->port);
        known = resolve_host(t, h->host, h->port, reterr, room) || known;
    }
    buf_add(&about, "", 1);
    target_set(&t->about, buf_ptr(&about));
    buf_reset(&about);
    return known;
}
