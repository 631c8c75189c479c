/* files: reads and replaces whole small files. All functions return 0 or an errno. */
#ifndef LATCHD_DAEMON_FILES_H
#define LATCHD_DAEMON_FILES_H

#include "util/buf.h"
#include "util/span.h"

#include <sys/types.h>

/* Appends a file's content to `out`, at most `max` bytes (else EFBIG). ret_mode may be
 * NULL. */
int file_read(const char *path, size_t max, struct buf *out, mode_t *ret_mode);
/* Replaces a file atomically: even after a power cut it has the old or the new
 * content. */
int file_replace(const char *path, struct span text, mode_t mode);

#endif
