#include "support/runner.h"
#include "util/json.h"
#include "util/text.h"

static struct buf out;
static struct json json;

static void setup(void)
{
    out = (struct buf){ 0 };
    json = (struct json){ .out = &out };
}

static void teardown(void)
{
    buf_reset(&out);
}

static void expect(const char *want)
{
    buf_add(&out, "", 1);
    ck_assert_str_eq(buf_ptr(&out), want);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(commas_stand_between_values_only)
{
    json_open(&json, NULL, '{');
    json_uint(&json, "a", 1);
    json_open(&json, "b", '[');
    json_close(&json, ']');
    json_open(&json, "c", '[');
    json_null(&json, NULL);
    json_bool(&json, NULL, true);
    json_open(&json, NULL, '{');
    json_close(&json, '}');
    json_close(&json, ']');
    json_text(&json, "d", "x");
    json_close(&json, '}');
    expect("{\"a\":1,\"b\":[],\"c\":[null,true,{}],\"d\":\"x\"}");
}

static const struct {
    struct span bytes;
    const char *text;
} CASES[] = {
    { { "plain name", 10 }, "\"plain name\"" },
    { { "\"quotes\"", 8 }, "\"\\\"quotes\\\"\"" },
    { { "back\\slash", 10 }, "\"back\\\\\\\\slash\"" },
    { { "</script>", 9 }, "\"\\u003c/script>\"" },
    { { "a\nb\0c\x7f", 6 }, "\"a\\\\x0ab\\\\x00c\\\\x7f\"" },
    { { "\xc3\xa9t\xc3\xa9", 5 }, "\"\xc3\xa9t\xc3\xa9\"" },
    { { "\xf0\x9f\x94\x92", 4 }, "\"\xf0\x9f\x94\x92\"" },
    { { "\xff\xfe", 2 }, "\"\\\\xff\\\\xfe\"" },
    { { "\xc3", 1 }, "\"\\\\xc3\"" },            /* cut off */
    { { "\xc0\xaf", 2 }, "\"\\\\xc0\\\\xaf\"" }, /* too long for what it is */
    { { "\xed\xa0\x80", 3 }, "\"\\\\xed\\\\xa0\\\\x80\"" }, /* half of a pair */
    { { "\xe2\x80\xae"
        "abc",
        6 },
      "\"\\\\u{202e}abc\"" },                     /* from right to left */
    { { "\xe2\x80\x8b", 3 }, "\"\\\\u{200b}\"" }, /* a space that nobody sees */
    { { "", 0 }, "\"\"" },
};

START_TEST(bytes_become_what_can_be_read_and_not_mistaken, TEST_ROWS(CASES))
{
    json_bytes(&json, NULL, CASES[_i].bytes);
    expect(CASES[_i].text);
}

START_TEST(every_code_point_is_read_back)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        size_t len = 0, whole, cut;
        uint32_t back = 0, code_of_cut;
        bool surrogate = code >= 0xd800 && code < 0xe000;

        if (code < 0x80) {
            bytes[len++] = (char)code;
        } else if (code < 0x800) {
            bytes[len++] = (char)(0xc0 | code >> 6);
        } else if (code < 0x10000) {
            bytes[len++] = (char)(0xe0 | code >> 12);
            bytes[len++] = (char)(0x80 | (code >> 6 & 0x3f));
        } else {
            bytes[len++] = (char)(0xf0 | code >> 18);
            bytes[len++] = (char)(0x80 | (code >> 12 & 0x3f));
            bytes[len++] = (char)(0x80 | (code >> 6 & 0x3f));
        }
        if (code >= 0x80) {
            bytes[len++] = (char)(0x80 | (code & 0x3f));
        }
        whole = utf8_decode(span_of(bytes, len), &back);
        cut = len < 2 ? 0 : utf8_decode(span_of(bytes, len - 1), &code_of_cut);
        if (whole != (surrogate ? 0 : len) || (!surrogate && back != code) ||
            cut != 0) {
            ck_abort_msg("U+%04x", code); /* a million of checks would take seconds */
        }
    }
}
