#include "daemon/traces.h"
#include "support/runner.h"

static const struct {
    const char *url;
    const char *host; /* NULL: it is refused */
    const char *port, *authority, *path;
} URLS[] = {
    { "http://localhost:4318/v1/traces", "localhost", "4318", "localhost:4318",
      "/v1/traces" },
    { "http://localhost", "localhost", "80", "localhost", "/" },
    { "http://localhost/x?k=v", "localhost", "80", "localhost", "/x?k=v" },
    { "http://localhost:1?k=v", "localhost", "1", "localhost:1", "/?k=v" },
    { "http://[::1]:65535/", "::1", "65535", "[::1]:65535", "/" },
    { "http://[::1]", "::1", "80", "[::1]", "/" },
    { .url = "" },
    { .url = "https://localhost" },
    { .url = "a:4318" },
    { .url = "http://" },
    { .url = "http://:4318" },
    { .url = "http:///v1/traces" },
    { .url = "http://localhost:" },
    { .url = "http://localhost:0" },
    { .url = "http://localhost:65536" },
    { .url = "http://localhost:4318x" },
    { .url = "http://[::1" },
    { .url = "http://[]:1" },
    { .url = "http://[::1]x" },
    { .url = "http://user@localhost" },
    { .url = "http://localhost/b c" },
    { .url = "http://localhost/\r\nX-Other: header" },
    { .url = "http://localhost/#fragment" },
};

START_TEST(a_url_has_a_host_a_port_and_a_path, TEST_ROWS(URLS))
{
    struct traces_url url;
    bool ok = traces_url_parse(URLS[_i].url, &url);

    ck_assert_int_eq(ok, URLS[_i].host != NULL);
    if (ok) {
        ck_assert_str_eq(url.host, URLS[_i].host);
        ck_assert_str_eq(url.port, URLS[_i].port);
        ck_assert_str_eq(url.authority, URLS[_i].authority);
        ck_assert_str_eq(url.path, URLS[_i].path);
    }
}

#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN_ID "b7ad6b7169203331"

static const struct {
    const char *text;
    bool ok, sampled;
} PARENTS[] = {
    { "00-" TRACE_ID "-" SPAN_ID "-01", true, true },
    { "00-" TRACE_ID "-" SPAN_ID "-00", true, false },
    { "00-" TRACE_ID "-" SPAN_ID "-03", true, true },
    { "cc-" TRACE_ID "-" SPAN_ID "-01-later", true, true },
    { "cc-" TRACE_ID "-" SPAN_ID "-01", true, true },
    { .text = "" },
    { .text = "00-" TRACE_ID "-" SPAN_ID },
    { .text = "00-" TRACE_ID "-" SPAN_ID "-01-later" },
    { .text = "cc-" TRACE_ID "-" SPAN_ID "-01.later" },
    { .text = "ff-" TRACE_ID "-" SPAN_ID "-01" },
    { .text = "0x-" TRACE_ID "-" SPAN_ID "-01" },
    { .text = "00-" TRACE_ID "-" SPAN_ID "-0x" },
    { .text = "00_" TRACE_ID "-" SPAN_ID "-01" },
    { .text = "00-" TRACE_ID "_" SPAN_ID "-01" },
    { .text = "00-" TRACE_ID "-" SPAN_ID "_01" },
    { .text = "00-00000000000000000000000000000000-" SPAN_ID "-01" },
    { .text = "00-" TRACE_ID "-0000000000000000-01" },
    { .text = "00-0AF7651916CD43DD8448EB211C80319C-" SPAN_ID "-01" },
    { .text = "00-" TRACE_ID "-b7ad6b716920333\"-01" },
};

START_TEST(a_traceparent_is_what_w3c_says, TEST_ROWS(PARENTS))
{
    struct trace_parent parent;
    bool ok = trace_parent_parse(span_str(PARENTS[_i].text), &parent);

    ck_assert_int_eq(ok, PARENTS[_i].ok);
    if (ok) {
        ck_assert_int_eq(parent.sampled, PARENTS[_i].sampled);
        ck_assert(memcmp(parent.trace_id, TRACE_ID, 32) == 0);
        ck_assert(memcmp(parent.span_id, SPAN_ID, 16) == 0);
    }
}
