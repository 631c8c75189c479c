/* fake_sentinel: a process that answers as a Sentinel does, and says what it is told to
 * say, true or not. It dies with the test.
 *
 * Its address is localhost (any name of it) and a port of the kernel's choice, which it
 * keeps while it is stopped and started. What goes wrong fails the test. */
#ifndef LATCHD_TESTS_FAKE_SENTINEL_H
#define LATCHD_TESTS_FAKE_SENTINEL_H

#include <stdint.h>

struct fake_sentinel;

/* It knows the master `mymaster`. Not started, so that its port is known first. */
struct fake_sentinel *fake_sentinel_new(void);
/* "user password" wanted of clients; a user who is default may be left out of AUTH. */
void fake_sentinel_set_login(struct fake_sentinel *f, const char *user,
                             const char *password);
void fake_sentinel_start(struct fake_sentinel *f);
/* kill -9. */
void fake_sentinel_stop(struct fake_sentinel *f);
void fake_sentinel_free(struct fake_sentinel *f); /* stops it; NULL is fine */

int fake_sentinel_port(const struct fake_sentinel *f);
/* The master from now on; nobody is told. Port 0: there is none of that name. */
void fake_sentinel_name(struct fake_sentinel *f, const char *host, int port,
                        uint64_t epoch);
/* +switch-master to all listeners. */
void fake_sentinel_announce(struct fake_sentinel *f);
/* It knows of another one from now on; at most one, and NULL is none. */
void fake_sentinel_knows(struct fake_sentinel *f, const struct fake_sentinel *other);
/* How many askings it has answered. */
uint64_t fake_sentinel_asked(const struct fake_sentinel *f);

#endif
