/* screen: the whole terminal, taken and given back. Plain ANSI sequences.
 *
 * Between screen_enter() and screen_leave() what is typed comes as it is typed, unseen,
 * and the screen is another one, so that the old one is there again afterwards. */
#ifndef LATCHD_LATCHCTL_SCREEN_H
#define LATCHD_LATCHCTL_SCREEN_H

#include "util/buf.h"

#include <stdbool.h>
#include <termios.h>

struct screen {
    bool inside;
    struct termios before;
};

/* Takes over the terminal. False: standard input or output is none. */
bool screen_enter(struct screen *s);
void screen_leave(struct screen *s);
/* The size of the terminal; 80x24 if unknown. */
void screen_size(size_t *ret_columns, size_t *ret_rows);
/* Shows `text`, lines that end in \n, of which those that fit are shown and cut where
 * the screen ends. The line that begins with \a is shown inverse, without that. */
void screen_show(const struct buf *text);

#endif
