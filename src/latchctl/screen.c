#include "latchctl/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24 };

/* A terminal that does not take the text has gone; the next read fails. */
static void write_all(const struct buf *b)
{
    struct span rest = buf_span(b);

    while (rest.len > 0) {
        ssize_t n = write(STDOUT_FILENO, rest.ptr, rest.len);

        if (n <= 0) {
            return;
        }
        rest = span_after(rest, (size_t)n);
    }
}

static void put_text(const char *text)
{
    struct buf b = { 0 };

    buf_add_str(&b, text);
    write_all(&b);
    buf_reset(&b);
}

bool screen_enter(struct screen *s)
{
    struct termios raw;

    if (isatty(STDOUT_FILENO) == 0 || tcgetattr(STDIN_FILENO, &s->before) != 0) {
        return false;
    }
    raw = s->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0; /* Ctrl-Z discards a key that poll() has reported already */
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
        return false;
    }
    put_text("\033[?1049h\033[?25l\033[2J");
    s->inside = true;
    return true;
}

void screen_leave(struct screen *s)
{
    if (s->inside) {
        put_text("\033[?25h\033[?1049l");
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &s->before);
        s->inside = false;
    }
}

void screen_size(size_t *ret_columns, size_t *ret_rows)
{
    struct winsize size = { 0 };

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col == 0 ? COLUMNS_DEFAULT : size.ws_col;
    *ret_rows = size.ws_row == 0 ? ROWS_DEFAULT : size.ws_row;
}

void screen_show(const struct buf *text)
{
    struct span rest = buf_span(text);
    struct buf out = { 0 };
    size_t columns;
    size_t rows;

    screen_size(&columns, &rows);
    buf_add_str(&out, "\033[H");
    for (size_t row = 0; row < rows && rest.len > 0; row++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end == NULL ? rest.len : (size_t)(end - rest.ptr);
        struct span line = span_of(rest.ptr, len);
        bool inverse = line.len > 0 && line.ptr[0] == '\a';

        rest = span_after(rest, end == NULL ? len : len + 1);
        line = inverse ? span_after(line, 1) : line;
        line.len = line.len < columns ? line.len : columns;
        buf_add_str(&out, row == 0 ? "" : "\n");
        buf_add_str(&out, inverse ? "\033[7m" : "");
        buf_add_span(&out, line);
        buf_add_str(&out, inverse ? "\033[0m" : "");
        buf_add_str(&out, line.len < columns ? "\033[K" : "");
    }
    buf_add_str(&out, "\033[J");
    write_all(&out);
    buf_reset(&out);
}
