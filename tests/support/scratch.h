/* scratch: one private directory for a test program, made by the runner.
 *
 * Whatever a test leaves there as *.log is printed by the runner when a test failed, so
 * a helper that ends well removes its log. The directory goes when the program ends. */
#ifndef LATCHD_TESTS_SCRATCH_H
#define LATCHD_TESTS_SCRATCH_H

#include <stddef.h>

/* Before the first test: makes the directory. */
void scratch_open(void);
/* After the last one. `failed`: print the logs first, as TAP comments. */
void scratch_close(int failed);

/* A path in it that nobody else has: `<kind>-<pid>-<n><suffix>`. */
void scratch_path(const char *kind, const char *suffix, char *ret, size_t room);

#endif
