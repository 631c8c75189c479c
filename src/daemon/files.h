/* files: whole small files, read and replaced. Returns 0 or an errno. */
#ifndef LATCHD_DAEMON_FILES_H
#define LATCHD_DAEMON_FILES_H

#include "util/buf.h"
#include "util/span.h"

#include <sys/types.h>

/* Appends the content, at most `max` bytes (EFBIG). ret_mode may be NULL. */
int file_read(const char *path, size_t max, struct buf *out, mode_t *ret_mode);
/* The old content or the new one is there at any instant, also after a power cut. */
int file_replace(const char *path, struct span text, mode_t mode);
/* A removal in that directory survives a power cut from now on. */
int file_sync_dir_of(const char *path);

#endif
