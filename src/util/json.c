#include "util/json.h"

#include "util/text.h"

static void begin_value(struct json *j, const char *key)
{
    if (j->more) {
        buf_add(j->out, ",", 1);
    }
    j->more = true;
    if (key != NULL) {
        buf_printf(j->out, "\"%s\":", key);
    }
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin_value(j, key);
    buf_add(j->out, &bracket, 1);
    j->more = false;
}

void json_close(struct json *j, char bracket)
{
    buf_add(j->out, &bracket, 1);
    j->more = true;
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    buf_add_int(j->out, (int64_t)value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin_value(j, key);
    buf_add_str(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    begin_value(j, key);
    buf_add_str(j->out, "null");
}

void json_bytes(struct json *j, const char *key, struct span value)
{
    begin_value(j, key);
    buf_add(j->out, "\"", 1);
    while (value.len > 0) {
        uint32_t code;
        size_t len = utf8_decode(value, &code);

        if (len == 0) {
            buf_printf(j->out, "\\\\x%02x", (uint8_t)value.ptr[0]);
            len = 1;
        } else if (code < 0x80 && utf8_is_tricky(code)) {
            buf_printf(j->out, "\\\\x%02x", (unsigned)code);
        } else if (utf8_is_tricky(code)) {
            buf_printf(j->out, "\\\\u{%04x}", (unsigned)code);
        } else if (code == '\\') {
            buf_add_str(j->out, "\\\\\\\\");
        } else if (code == '"') {
            buf_add_str(j->out, "\\\"");
        } else if (code == '<') {
            buf_add_str(j->out, "\\u003c"); /* harmless inside HTML, too */
        } else {
            buf_add(j->out, value.ptr, len);
        }
        value = span_after(value, len);
    }
    buf_add(j->out, "\"", 1);
}

void json_text(struct json *j, const char *key, const char *value)
{
    json_bytes(j, key, span_str(value));
}
