#include "backend/config/backend_config.h"

#include "backend/config/backend_config_priv.h"
#include "util/span.h"

static const char STARS[] = "***";

/* scheme://user:password@... */
static void show_login(struct span url, struct buf *out)
{
    const char *begin, *at, *colon = NULL;

    if (url.ptr == NULL || url.len == 0) {
        return;
    }
    begin = memmem(url.ptr, url.len, "://", 3);
    at = memrchr(url.ptr, '@', url.len);
    if (begin != NULL && at != NULL && at > begin + 3) {
        colon = memchr(begin + 3, ':', (size_t)(at - begin - 3));
    }
    if (colon == NULL) {
        buf_add_span(out, url);
        return;
    }
    buf_add(out, url.ptr, (size_t)(colon + 1 - url.ptr));
    buf_add_str(out, STARS);
    buf_add(out, at, (size_t)(url.ptr + url.len - at));
}

/* ?name=value&name=value */
static void show_options(struct span text, struct buf *out)
{
    while (text.len != 0) {
        const char *end = memchr(text.ptr + 1, '&', text.len - 1);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);
        const char *equals = memchr(text.ptr, '=', len);

        if (equals != NULL && memmem(text.ptr, len, "password=", 9) != NULL) {
            buf_add(out, text.ptr, (size_t)(equals + 1 - text.ptr));
            buf_add_str(out, STARS);
        } else {
            buf_add(out, text.ptr, len);
        }
        text = span_after(text, len);
    }
}

static void show_word(struct span word, bool has_options, struct buf *out)
{
    const char *options =
        has_options && word.len != 0 ? memchr(word.ptr, '?', word.len) : NULL;
    size_t len = options == NULL ? word.len : (size_t)(options - word.ptr);

    show_login(span_of(word.ptr, len), out);
    show_options(span_after(word, len), out);
}

void backend_config_show(const char *text, struct buf *out)
{
    /* A password may have spaces in it, but not there. */
    const char *ends = backend_config_is_quorum(text) ? " " : "";
    bool has_options = backend_config_is_sentinel(text);

    for (;;) {
        size_t len = strcspn(text, ends);

        show_word(span_of(text, len), has_options, out);
        if (text[len] == '\0') {
            return;
        }
        buf_add_str(out, " ");
        text += len + 1;
    }
}
