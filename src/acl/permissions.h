/* permissions: what one user may do: on or off, passwords, commands, names, channels.
 * Rules in Redis's ACL syntax change them, and they can be written out in it again. A
 * struct permissions owns its memory: permissions_init() (nothing is allowed),
 * permissions_fini(). permissions_copy() is for trying rules out. Every list has a
 * named limit. */
#ifndef LATCHD_ACL_PERMISSIONS_H
#define LATCHD_ACL_PERMISSIONS_H

#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* catalog: the commands and categories that rules can name. cmd/ fills it from its
 * table of commands; it must outlive the users. */

enum { ACL_COMMANDS_MAX = 256 }; /* commands of a catalog */

/* A command's number is its index. Sorted by name, in lower case; a subcommand is
 * named `container|sub` and follows its container. */
struct acl_command {
    const char *name;
    unsigned categories; /* bits, see acl_catalog */
    bool open;           /* anybody may run it: AUTH, HELLO, ... */
};

struct acl_catalog {
    const struct acl_command *commands;
    size_t command_count;
    const char *const *categories; /* "@lock", in bit order */
    size_t category_count;
};

enum { ACL_NOT_THERE = -1 };
/* The number of a category's bit, by its name in any case without the `@`. */
int catalog_category(const struct acl_catalog *c, struct span name);

/* secret: passwords, stored as SHA-256 only and compared in constant time. The
 * arithmetic is OpenSSL's. */

enum {
    SECRET_BYTES = 32,
    SECRET_HEX = 2 * SECRET_BYTES,
    SECRET_BITS_MAX = 4096, /* of a password that secret_random() makes */
    SECRET_BITS_DEFAULT = 256,
};

struct secret {
    uint8_t bytes[SECRET_BYTES];
};

void secret_hash(struct span password, struct secret *ret);
void secret_add_hex(const struct secret *s, struct buf *out);
/* Appends `bits` random bits as hexadecimal digits, rounded up. False: the system has
 * no random bytes. */
bool secret_random(size_t bits, struct buf *out);

enum {
    PERM_PASSWORDS_MAX =
        64, /* of one user: a new one can be added before the old is removed */
    PERM_PASSWORD_MAX = 4096,     /* bytes of one */
    PERM_PATTERNS_MAX = 256,      /* of names, and as many of channels */
    PERM_PATTERN_MAX = 528,       /* bytes of one: the time of a match grows with it */
    PERM_COMMAND_RULES_MAX = 512, /* that LIST shows */
};

enum permission_flag {
    PERM_ON = 1 << 0,
    PERM_NOPASS = 1 << 1,
    PERM_SANITIZE = 1 << 2, /* accepted, without effect */
    PERM_SKIP_SANITIZE = 1 << 3,
    PERM_ALL_COMMANDS = 1 << 4,
    PERM_ALL_NAMES = 1 << 5,
    PERM_ALL_CHANNELS = 1 << 6,
    PERM_ANYTHING = PERM_ALL_COMMANDS | PERM_ALL_NAMES | PERM_ALL_CHANNELS,
};

enum permission_access {
    PERM_READ = 1 << 0,  /* to look at a lock */
    PERM_WRITE = 1 << 1, /* to take it, and to give it back */
    PERM_BOTH = PERM_READ | PERM_WRITE,
};

struct pattern {
    unsigned access; /* read, write or both; of names only */
    size_t len;
    char *text;
};

struct patterns {
    struct pattern *list;
    size_t count;
};

/* A rule as it was written, `+client|kill`, `-@admin`. Later rules override earlier
 * ones. */
struct command_rule {
    uint16_t number; /* of the command, or of the category's bit */
    bool category;
    bool allow;
};

struct permissions {
    unsigned flags; /* ALL_COMMANDS: `rules` begins with +@all, else with -@all */
    struct secret *passwords;
    size_t password_count;
    struct patterns names;
    struct patterns channels;
    struct command_rule *rules;
    size_t rule_count;
    uint64_t
        allowed[ACL_COMMANDS_MAX / 64]; /* what the rules allow, a bit per command */
};

void permissions_init(struct permissions *t);
void permissions_fini(struct permissions *t);
void permissions_copy(struct permissions *to,
                      const struct permissions *from); /* `to` is not initialised */
/* `on nopass ~* &* +@all`: the initial permissions of the user `default`. */
void permissions_init_open(struct permissions *t);

/* Applies one rule. NULL: done; otherwise the reason, and nothing is changed. */
const char *permissions_apply(struct permissions *t, const struct acl_catalog *c,
                              struct span rule) __attribute__((warn_unused_result));
/* Whether the rule may contain a password, and must not appear in logs. */
bool permissions_rule_is_secret(struct span rule);

/* --- queries ---------------------------------------------------------- */

/* Whether a password is right. Always compares all of them, so that the time tells
 * nothing. */
bool permissions_password_fits(const struct permissions *t, const struct secret *given);

static inline bool permissions_may_anything(const struct permissions *t)
{
    return (t->flags & PERM_ANYTHING) == PERM_ANYTHING &&
           t->rule_count == 0; /* no command was taken away again */
}

static inline bool permissions_may_run(const struct permissions *t, size_t command)
{
    return (t->allowed[command / 64] >> (command % 64) & 1U) != 0;
}

bool permissions_may_name(const struct permissions *t, struct span name,
                          unsigned access);
bool permissions_may_channel(const struct permissions *t, struct span channel);
/* Whether the user may PSUBSCRIBE to a pattern: it must equal one of the user's own. */
bool permissions_may_channels(const struct permissions *t, struct span pattern);

/* --- output ----------------------------------------------------------- */

/* The flags as GETUSER lists them ("on", "nopass"); returns how many, at most 4. */
size_t permissions_flag_words(const struct permissions *t, const char *ret[4]);
void permissions_add_names(const struct permissions *t, struct buf *out);
void permissions_add_channels(const struct permissions *t, struct buf *out);
void permissions_add_commands(const struct permissions *t, const struct acl_catalog *c,
                              struct buf *out);
/* Appends all permissions as in a line of the ACL file, after the user's name. */
void permissions_add_line(const struct permissions *t, const struct acl_catalog *c,
                          struct buf *out);

#endif
