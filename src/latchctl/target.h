/* target: which latchd is meant, and who asks it.
 *
 * From LATCHD_URL, -u, -h, -p, -s, --user, --tls and its files, and the password's
 * variables, as redis-cli has them. The strings are the target's own. */
#ifndef LATCHD_LATCHCTL_TARGET_H
#define LATCHD_LATCHCTL_TARGET_H

#include "io/tls.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { TARGET_ADDRESSES_MAX = 8, TARGET_ERROR_MAX = 512, TARGET_SNI_MAX = 253 };

struct target_address {
    struct sockaddr_storage addr;
    socklen_t len;
    const char *host; /* whose address it is, for TLS */
};

struct target_host {
    char *host;
    char *port;
};

/* The options of TLS; NULL: not given. */
struct target_tls {
    bool by_option;
    bool by_url;
    bool insecure; /* accept any certificate of latchd */
    char *sni;     /* the name in latchd's certificate; NULL: the host */
    char *ca_cert_file;
    char *ca_cert_dir;
    char *cert_file; /* our own certificate */
    char *key_file;
};

struct target {
    char *host;
    char *port;
    /* Further hosts of the URL, which are tried in turn. */
    struct target_host more[TARGET_ADDRESSES_MAX - 1];
    size_t more_count;
    char *path; /* a unix socket; NULL: TCP */
    char *user;
    char *password;
    struct target_tls tls;
    char *about; /* the addresses in messages, set by target_resolve() */
    struct target_address addresses[TARGET_ADDRESSES_MAX];
    size_t address_count;
};

/* Sets the default: 127.0.0.1 and latchd's port. */
void target_init(struct target *t);
void target_fini(struct target *t);

void target_set(char **field, const char *value);
/* Forgets the further hosts. */
void target_set_one(struct target *t);

/* Parses `redis://[[user]:password@]host[:port][,host[:port] ...][/0]`, the same with
 * `rediss://` for TLS, or `unix:///path`. */
bool target_set_url(struct target *t, const char *url, char *reterr, size_t room);

bool target_wants_tls(const struct target *t);
/* Whether the TLS options fit together, and their files can be used. False: reterr
 * says why not. */
bool target_check_tls(const struct target *t, char *reterr, size_t room);
/* Reads the TLS files, anew each time, so that they can be rotated. NULL: reterr says
 * why. */
struct tls *target_read_tls(const struct target *t, char *reterr, size_t room);
/* The name that must be in the certificate of the latchd at that address. */
const char *target_tls_name(const struct target *t, const struct target_address *to);

/* Resolves the hosts, which may block. False: none of them is known, and reterr says
 * why. */
bool target_resolve(struct target *t, char *reterr, size_t room);

#endif
