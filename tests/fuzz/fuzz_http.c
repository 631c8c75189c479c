/* One client of the status page, whatever it sends: it is answered in HTTP or not at
 * all, what is not there is never given, nothing is given to who came by a name that is
 * not ours, and of a client that has left nothing stays.
 *
 * Input: a digit, what the client does (enum habit); then its bytes, in pieces that end
 * at each '|'. Requests for locks get the replies that REPLIES has. The server is the
 * daemon's, on its loop, over a socketpair: ports would be used up. */
#include "fuzz.h"

#include "http/host.h"
#include "http/http_priv.h"
#include "latchd/protocol.h"

#include <ctype.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KEEP_MAX = 64 * 1024, /* of the answers */
    ROUNDS_MAX = 100000,  /* of the loop for one piece: more is a server that spins */
    NAME_MAX_LEN = 255,
    STATUS_AT = 9, /* behind "HTTP/1.1 " */
    STATUS_END = 12,
    STATUS_OK = 200,
};

enum habit {
    HABIT_LEAVES = 1, /* without reading a byte */
    HABIT_ILL = 2,    /* the daemon is not well */
    HABIT_HALF = 4,   /* says that it sends no more, and still reads */
};

/* A daemon's replies to a login and to what follows, whatever that is. One that is not
 * what was asked for is never answered. */
static const char REPLIES[] = "%1\r\n$6\r\nserver\r\n$6\r\nlatchd\r\n"
                              ":7\r\n:1000\r\n:0\r\n";

#define SECRET "fuzz_secret"

static struct {
    uv_loop_t loop;
    struct http *http;
    bool well;
    int daemon; /* the other end of the last connection to it */
} web = { .daemon = -1 };

struct visitor {
    int fd; /* -1: closed */
    bool reads;
    struct buf answer;
};

/* The first request, if it is written as the standard has it. */
struct head {
    struct span path;
    unsigned hosts, accepted;
};

/* The compiler cannot guide the fuzzer through libmicrohttpd; what it answers can. */
__attribute__((used, section("__libfuzzer_extra_counters"))) static uint8_t seen[1000];

static void fail(const char *what)
{
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

/* --- what the daemon is to it ----------------------------------------- */

static bool health(void *ctx, struct buf *out)
{
    buf_add_str(out, web.well ? "ok" : "Redis is out of reach");
    return web.well;
}

static void tell(void *ctx, struct buf *out)
{
    buf_add_str(out, SECRET " 1\n");
}

/* Every byte is read, so that one that is not there shows. */
static void add_looked_at(struct span text, struct buf *out)
{
    unsigned sum = 0;

    for (size_t i = 0; i < text.len; i++) {
        sum += (uint8_t)text.ptr[i];
    }
    buf_printf(out, SECRET " %u\n", sum);
}

static void tell_names(void *ctx, struct span find, uint64_t cursor, struct buf *out)
{
    if (find.len > LATCHD_NAME_MAX) {
        fail("a search for more than a name can have");
    }
    add_looked_at(find, out);
}

static void tell_name(void *ctx, struct span name, struct buf *out)
{
    if (name.len == 0 || name.len > LATCHD_NAME_MAX) {
        fail("a look at what can be no name");
    }
    add_looked_at(name, out);
}

static void close_daemon(void)
{
    if (web.daemon >= 0) {
        (void)close(web.daemon);
        web.daemon = -1;
    }
}

static int connect_daemon(void *ctx, const char *peer, bool is_local)
{
    int pair[2];

    if (!is_local ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        fail("no connection to the daemon");
    }
    if (send(pair[1], REPLIES, sizeof(REPLIES) - 1, MSG_NOSIGNAL) < 0) {
        fail("no replies");
    }
    close_daemon();
    web.daemon = pair[1];
    return pair[0];
}

static void open_web(void)
{
    struct http_setup setup = {
        .fd = -1,
        .loop = &web.loop,
        .address = "127.0.0.1",
        .port = HTTP_PORT_AUTO,
        .health = health,
        .metrics = tell,
        .status = tell,
        .names = tell_names,
        .name = tell_name,
        .connect = connect_daemon,
    };
    char name[64], err[256];

    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&web.loop) < 0) {
        fail("no loop");
    }
    web.http = http_open(&setup, name, sizeof(name), err, sizeof(err));
    if (web.http == NULL) {
        fail(err);
    }
}

/* --- a client --------------------------------------------------------- */

static void enter(struct visitor *v)
{
    struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(1) };
    int pair[2];

    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        fail("no socketpair");
    }
    v->fd = pair[0];
    if (MHD_add_connection(web.http->mhd, pair[1], (const struct sockaddr *)&from,
                           sizeof(from)) != MHD_YES) {
        fail("a client is not let in");
    }
}

/* Whether there was anything to read. */
static bool take(struct visitor *v)
{
    char bytes[16384];
    bool any = false;
    ssize_t n;

    while (v->fd >= 0 && v->reads && (n = recv(v->fd, bytes, sizeof(bytes), 0)) > 0) {
        size_t room = KEEP_MAX - buf_len(&v->answer);

        buf_add(&v->answer, bytes, (size_t)n < room ? (size_t)n : room);
        any = true;
    }
    return any;
}

/* It would do something at once. */
static bool is_busy(void)
{
    struct http *h = web.http;
    struct pollfd p = { .events = POLLIN };

    return (uv_is_active((uv_handle_t *)&h->timer) != 0 &&
            uv_timer_get_due_in(&h->timer) == 0) ||
           (uv_fileno((uv_handle_t *)&h->poll, &p.fd) == 0 && poll(&p, 1, 0) > 0);
}

/* What a request for a lock waits for is not seen, but comes within TURNS. */
static void settle(struct visitor *v)
{
    enum { TURNS = 4 };
    int rounds = 0, idle = 0;

    do {
        if (++rounds > ROUNDS_MAX) {
            fail("it spins");
        }
        (void)uv_run(&web.loop, UV_RUN_NOWAIT);
        idle = take(v) || is_busy() ? 0 : idle + 1;
    } while (idle < TURNS);
}

static void say(struct visitor *v, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len) {
        const char *bar = memchr(bytes.ptr + at, '|', bytes.len - at);
        size_t end = bar == NULL ? bytes.len : (size_t)(bar - bytes.ptr);

        if (send(v->fd, bytes.ptr + at, end - at, MSG_NOSIGNAL) < (ssize_t)(end - at)) {
            return; /* it has closed, or takes no more */
        }
        settle(v);
        at = end + 1;
    }
}

static void leave(struct visitor *v)
{
    const union MHD_DaemonInfo *info;

    (void)close(v->fd);
    v->fd = -1;
    settle(v);
    info = MHD_get_daemon_info(web.http->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    if (info == NULL || info->num_connections != 0 || !list_empty(&web.http->clients)) {
        fail("a client that has left is still there");
    }
    close_daemon();
}

/* --- what it asked for ------------------------------------------------ */

/* Up to CR LF, which is taken off `rest`; false: there is none. */
static bool line_of(struct span *rest, struct span *ret)
{
    const char *end = memmem(rest->ptr, rest->len, "\r\n", 2);

    if (end == NULL) {
        return false;
    }
    *ret = span_of(rest->ptr, (size_t)(end - rest->ptr));
    *rest = span_of(end + 2, rest->len - ret->len - 2);
    return true;
}

static bool read_first_line(struct span line, struct span *ret_path)
{
    size_t method = 0, end;

    while (method < line.len && isupper((unsigned char)line.ptr[method]) != 0) {
        method++;
    }
    end = method + 1;
    while (end < line.len && isgraph((unsigned char)line.ptr[end]) != 0) {
        end++;
    }
    if (method == 0 || end >= line.len || line.ptr[method] != ' ' ||
        end == method + 1) {
        return false;
    }
    *ret_path = span_of(line.ptr + method + 1, end - method - 1);
    return span_eq(span_of(line.ptr + end, line.len - end), SPAN(" HTTP/1.1")) ||
           span_eq(span_of(line.ptr + end, line.len - end), SPAN(" HTTP/1.0"));
}

static void note_host(struct span value, struct head *h)
{
    char name[NAME_MAX_LEN + 1];

    while (value.len > 0 && isblank((unsigned char)value.ptr[0]) != 0) {
        value = span_of(value.ptr + 1, value.len - 1);
    }
    while (value.len > 0 && isblank((unsigned char)value.ptr[value.len - 1]) != 0) {
        value.len--;
    }
    h->hosts++;
    if (value.len > NAME_MAX_LEN) {
        h->accepted++; /* that is for test_host */
        return;
    }
    memcpy(name, value.ptr, value.len);
    name[value.len] = '\0';
    h->accepted += host_is_numeric_or_local(name) ? 1 : 0;
}

static bool read_field(struct span line, struct head *h)
{
    size_t name = 0;

    while (name < line.len &&
           (isalnum((unsigned char)line.ptr[name]) != 0 || line.ptr[name] == '-')) {
        name++;
    }
    if (name == 0 || name == line.len || line.ptr[name] != ':') {
        return false;
    }
    for (size_t i = name; i < line.len; i++) {
        if (isprint((unsigned char)line.ptr[i]) == 0 && line.ptr[i] != '\t') {
            return false;
        }
    }
    if (name == 4 && strncasecmp(line.ptr, "host", name) == 0) {
        note_host(span_of(line.ptr + name + 1, line.len - name - 1), h);
    }
    return true;
}

static bool read_head(struct span in, struct head *ret)
{
    struct span line;

    *ret = (struct head){ 0 };
    if (!line_of(&in, &line) || !read_first_line(line, &ret->path)) {
        return false;
    }
    while (line_of(&in, &line)) {
        if (line.len == 0) {
            return true;
        }
        if (!read_field(line, ret)) {
            return false;
        }
    }
    return false;
}

/* Something can be at that path; an escaped one may be any. */
static bool is_path(struct span path)
{
    static const char *const PATHS[] = { "/", "/metrics", "/name.json", "/names.json",
                                         "/status.json" };
    const char *query = memchr(path.ptr, '?', path.len);

    if (memchr(path.ptr, '%', path.len) != NULL) {
        return true;
    }
    if (span_starts(path, SPAN("/v1/"))) {
        return true;
    }
    path.len = query == NULL ? path.len : (size_t)(query - path.ptr);
    for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
        if (span_eq(path, span_str(PATHS[i]))) {
            return true;
        }
    }
    return web.well && span_eq(path, SPAN("/healthz"));
}

/* --- what it got ------------------------------------------------------ */

static unsigned status_of(struct span answer)
{
    unsigned code = 0;

    if (answer.len < STATUS_END || memcmp(answer.ptr, "HTTP/1.", 7) != 0) {
        fail("an answer that is not HTTP");
    }
    for (size_t i = STATUS_AT; i < STATUS_END; i++) {
        if (isdigit((unsigned char)answer.ptr[i]) == 0) {
            fail("an answer without a status");
        }
        code = code * 10 + (unsigned)(answer.ptr[i] - '0');
    }
    seen[code]++;
    return code;
}

static void judge(struct span asked, struct span answer)
{
    unsigned code = status_of(answer);
    const char *next = memmem(answer.ptr + 1, answer.len - 1, "HTTP/1.", 7);
    size_t len = next == NULL ? answer.len : (size_t)(next - answer.ptr);
    struct head h;
    bool refused;

    if (!read_head(asked, &h)) {
        return;
    }
    refused = h.hosts > 0 && h.accepted == 0;
    if (code == STATUS_OK && (refused || !is_path(h.path))) {
        fail("what should not be given was");
    }
    if (refused && memmem(answer.ptr, len, SECRET, sizeof(SECRET) - 1) != NULL) {
        fail("something was told to who came by another name");
    }
}

static void add_without_bars(struct buf *out, struct span in)
{
    for (size_t i = 0; i < in.len; i++) {
        if (in.ptr[i] != '|') {
            buf_add(out, in.ptr + i, 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct visitor v = { .fd = -1 };
    struct buf asked = { 0 };
    struct span bytes;

    if (size == 0) {
        return 0;
    }
    bytes = span_of((const char *)data + 1, size - 1);
    if (web.http == NULL) {
        open_web();
    }
    web.well = (data[0] & HABIT_ILL) == 0;
    v.reads = (data[0] & HABIT_LEAVES) == 0;
    enter(&v);
    say(&v, bytes);
    if ((data[0] & HABIT_HALF) != 0) {
        (void)shutdown(v.fd, SHUT_WR);
        settle(&v);
    }
    leave(&v);
    if (buf_len(&v.answer) > 0) {
        add_without_bars(&asked, bytes);
        judge(buf_span(&asked), buf_span(&v.answer));
    }
    buf_reset(&asked);
    buf_reset(&v.answer);
    return 0;
}
