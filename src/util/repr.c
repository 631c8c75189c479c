#include "util/repr.h"

/* The letter of a control byte after a backslash; 0: none. */
static char letter_of(char ch)
{
    static const char BYTES[] = "\n\r\t\a\b";
    static const char LETTERS[] = "nrtab";
    const char *at = ch == '\0' ? NULL : strchr(BYTES, ch);

    return at == NULL ? '\0' : LETTERS[at - BYTES];
}

static bool is_plain(char ch)
{
    return ch >= ' ' && ch <= '~' && ch != '"' && ch != '\\';
}

static void add_escaped(struct buf *out, char ch)
{
    static const char HEX[] = "0123456789abcdef";
    char text[4] = { '\\', letter_of(ch) };
    size_t len = 2;

    if (ch == '"' || ch == '\\') {
        text[1] = ch;
    } else if (text[1] == '\0') {
        text[1] = 'x';
        text[2] = HEX[(unsigned char)ch >> 4];
        text[3] = HEX[(unsigned char)ch & 15];
        len = 4;
    }
    buf_add(out, text, len);
}

void repr_add(struct buf *out, struct span s)
{
    size_t plain = 0; /* the first byte that is not written yet */

    buf_add(out, "\"", 1);
    for (size_t i = 0; i < s.len; i++) {
        if (!is_plain(s.ptr[i])) {
            buf_add(out, s.ptr + plain, i - plain);
            add_escaped(out, s.ptr[i]);
            plain = i + 1;
        }
    }
    buf_add(out, s.ptr + plain, s.len - plain);
    buf_add(out, "\"", 1);
}
