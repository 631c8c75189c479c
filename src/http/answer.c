/* The answer to each request. */
#include "http/host.h"
#include "http/http_priv.h"
#include "http/prometheus.h"
#include "latchd/protocol.h"
#include "util/clock.h"
#include "util/parse.h"

#include <stdlib.h>
#include <string.h>

static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
    if (MHD_add_response_header(r, name, value) != MHD_YES) {
        abort(); /* no memory, or a mistake of ours */
    }
}

/* Nothing of this is for other sites, for caches, or to be guessed at. */
static struct MHD_Response *make_response(const char *type, const char *text,
                                          size_t len, enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, mode);

    if (r == NULL) {
        abort();
    }
    add_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    add_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    add_header(r, "X-Content-Type-Options", "nosniff");
    add_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    add_header(r, "Referrer-Policy", "no-referrer");
    return r;
}

/* `body` gives its memory away. */
static struct MHD_Response *make_from(const char *type, struct buf *body)
{
    if (buf_len(body) == 0) {
        buf_reset(body);
        return make_response(type, "", 0, MHD_RESPMEM_PERSISTENT);
    }
    return make_response(type, buf_ptr(body), buf_len(body), MHD_RESPMEM_MUST_FREE);
}

void answer_init(struct http *h)
{
    h->page = make_response("text/html; charset=utf-8", HTTP_PAGE, HTTP_PAGE_LEN,
                            MHD_RESPMEM_PERSISTENT);
    add_header(h->page, "Content-Security-Policy", HTTP_PAGE_POLICY);
}

static void drop_response(struct MHD_Response **r)
{
    if (*r != NULL) {
        MHD_destroy_response(*r);
        *r = NULL;
    }
}

void answer_fini(struct http *h)
{
    drop_response(&h->page);
    drop_response(&h->metrics.response);
    drop_response(&h->status.response);
}

/* --- one answer each -------------------------------------------------- */

static enum MHD_Result send_once(struct MHD_Connection *c, unsigned code,
                                 struct MHD_Response *r)
{
    enum MHD_Result ok = MHD_queue_response(c, code, r);

    MHD_destroy_response(r);
    return ok;
}

static enum MHD_Result refuse_request(struct MHD_Connection *c, unsigned code,
                                      const char *text)
{
    struct MHD_Response *r = make_response("text/plain; charset=utf-8", text,
                                           strlen(text), MHD_RESPMEM_PERSISTENT);

    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        add_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    } else if (code == MHD_HTTP_SERVICE_UNAVAILABLE) {
        add_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    return send_once(c, code, r);
}

static enum MHD_Result send_page(struct http *h, struct MHD_Connection *c)
{
    return MHD_queue_response(c, MHD_HTTP_OK, h->page);
}

static enum MHD_Result send_body(struct http *h, struct MHD_Connection *c,
                                 struct body *body, const char *type,
                                 void (*fill)(void *ctx, struct buf *out))
{
    uint64_t now = clock_boot_ms();

    if (body->response == NULL || now - body->made_ms >= HTTP_FRESH_MS) {
        struct buf out = { 0 };

        fill(h->setup.ctx, &out);
        drop_response(&body->response);
        body->response = make_from(type, &out);
        body->made_ms = now;
    }
    return MHD_queue_response(c, MHD_HTTP_OK, body->response);
}

static enum MHD_Result send_metrics(struct http *h, struct MHD_Connection *c)
{
    return send_body(h, c, &h->metrics, PROMETHEUS_TYPE, h->setup.metrics);
}

static enum MHD_Result send_status(struct http *h, struct MHD_Connection *c)
{
    return send_body(h, c, &h->status, "application/json", h->setup.status);
}

static enum MHD_Result send_health(struct http *h, struct MHD_Connection *c)
{
    struct buf out = { 0 };
    bool ok;

    ok = h->setup.health(h->setup.ctx, &out);
    buf_add_str(&out, "\n");
    return send_once(c, ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                     make_from("text/plain; charset=utf-8", &out));
}

/* --- what depends on the request -------------------------------------- */

/* Without its percent signs; bytes, and a NUL is one of them. An absent one is empty.
 */
static struct span argument_of(struct MHD_Connection *c, const char *key)
{
    const char *value = NULL;
    size_t len = 0;

    if (MHD_lookup_connection_value_n(c, MHD_GET_ARGUMENT_KIND, key, strlen(key),
                                      &value, &len) != MHD_YES ||
        value == NULL) {
        return SPAN_NONE;
    }
    return span_of(value, len);
}

/* Nothing of these is made once for all who ask: so there are only so many. */
static bool may_look(struct http *h)
{
    uint64_t now = clock_boot_ms();

    if (now - h->looks_since_ms >= HTTP_LOOKS_MS) {
        h->looks_since_ms = now;
        h->looks = 0;
    }
    if (h->looks == HTTP_LOOKS_MAX) {
        return false;
    }
    h->looks++;
    return true;
}

static enum MHD_Result refuse_look(struct MHD_Connection *c)
{
    return refuse_request(c, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "Too many requests for names: ask again in a moment.\n");
}

static enum MHD_Result send_names(struct http *h, struct MHD_Connection *c)
{
    struct span find = argument_of(c, "find"), from = argument_of(c, "cursor");
    struct buf out = { 0 };
    uint64_t cursor = 0;

    if (find.len > LATCHD_NAME_MAX) {
        return refuse_request(c, MHD_HTTP_BAD_REQUEST,
                              "No name is that long: find= has at most 512 bytes.\n");
    }
    if (from.len > 0 && !parse_u64(from, UINT64_MAX, &cursor)) {
        return refuse_request(c, MHD_HTTP_BAD_REQUEST,
                              "cursor= is the number of the answer before.\n");
    }
    if (!may_look(h)) {
        return refuse_look(c);
    }
    h->setup.names(h->setup.ctx, find, cursor, &out);
    return send_once(c, MHD_HTTP_OK, make_from("application/json", &out));
}

static enum MHD_Result send_name(struct http *h, struct MHD_Connection *c)
{
    struct span name = argument_of(c, "name");
    struct buf out = { 0 };

    if (name.len == 0 || name.len > LATCHD_NAME_MAX) {
        return refuse_request(c, MHD_HTTP_BAD_REQUEST,
                              "name= is a lock's name, 1 to 512 bytes, with %XX for "
                              "those that have a meaning in an address.\n");
    }
    if (!may_look(h)) {
        return refuse_look(c);
    }
    h->setup.name(h->setup.ctx, name, &out);
    return send_once(c, MHD_HTTP_OK, make_from("application/json", &out));
}

/* --- routing ---------------------------------------------------------- */

static const struct {
    const char *path;
    enum MHD_Result (*send)(struct http *h, struct MHD_Connection *c);
} ROUTES[] = {
    { "/", send_page },
    { "/healthz", send_health },
    { "/metrics", send_metrics },
    { "/name.json", send_name },
    { "/names.json", send_names },
    { "/status.json", send_status },
};

static bool is_for_us(const struct http *h, struct MHD_Connection *c)
{
    const char *host =
        MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

    return !h->local || host == NULL || host_is_numeric_or_local(host);
}

enum MHD_Result answer_request(void *cls, struct MHD_Connection *connection,
                               const char *url, const char *method, const char *version,
                               const char *upload, size_t *upload_size, void **state)
{
    struct http *h = cls;

    /* Answered before a body is read, so that libmicrohttpd closes after each. */
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return refuse_request(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "Only GET and HEAD: this is for looking.\n");
    }
    if (!is_for_us(h, connection)) {
        return refuse_request(
            connection, MHD_HTTP_FORBIDDEN,
            "On a loopback address latchd answers to its address in digits "
            "and to localhost, not to other names.\n");
    }
    for (size_t i = 0; i < sizeof(ROUTES) / sizeof(ROUTES[0]); i++) {
        if (strcmp(url, ROUTES[i].path) == 0) {
            return ROUTES[i].send(h, connection);
        }
    }
    return refuse_request(connection, MHD_HTTP_NOT_FOUND,
                          "There are /, /status.json, /names.json, /name.json, "
                          "/metrics and /healthz.\n");
}
