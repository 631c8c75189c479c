#include "util/edits.h"

#include <ctype.h>
#include <stdint.h>

enum { ROW = EDITS_LENGTH_MAX + 1 };

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int folded_byte(struct span word, size_t i)
{
    return tolower((unsigned char)word.ptr[i]);
}

/* rows[i][j]: from the first i letters of `a` to the first j of `b`. */
size_t edits_between(struct span a, struct span b)
{
    uint8_t rows[ROW][ROW];

    if (a.len > EDITS_LENGTH_MAX || b.len > EDITS_LENGTH_MAX) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t j = 0; j <= b.len; j++) {
            size_t best;

            if (i == 0 || j == 0) {
                rows[i][j] = (uint8_t)(i + j);
                continue;
            }
            best = rows[i - 1][j - 1] +
                   (folded_byte(a, i - 1) == folded_byte(b, j - 1) ? 0U : 1U);
            best = min_of(best, min_of(rows[i - 1][j], rows[i][j - 1]) + 1U);
            if (i > 1 && j > 1 && folded_byte(a, i - 1) == folded_byte(b, j - 2) &&
                folded_byte(a, i - 2) == folded_byte(b, j - 1)) {
                best = min_of(best, rows[i - 2][j - 2] + 1U);
            }
            rows[i][j] = (uint8_t)best;
        }
    }
    return rows[a.len][b.len];
}
