/* acl: the users: who they are, what they may do, and what was refused to them.
 *
 * A struct acl owns its users. Whoever keeps a user across turns holds a reference:
 * acl_ref(), acl_unref(); a user that was deleted lives on, `gone`, until the last one
 * is given back. The user `default` is always there. Pure memory: no sockets, no
 * clock, no files (acl_load() is given the text). Times are milliseconds. */
#ifndef LATCHD_ACL_ACL_H
#define LATCHD_ACL_ACL_H

#include "acl/catalog.h"
#include "acl/permissions.h"
#include "util/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ACL_USERS_MAX = 10000,
    ACL_NAME_MAX = 128,         /* bytes of a user's name */
    ACL_FILE_MAX = 4 << 20,     /* bytes of a file of users */
    ACL_FILE_MISTAKES_MAX = 16, /* that one reading tells */
    ACL_REASON_MAX = 512,       /* room that is enough for every reterr */
};

struct acl_user {
    UT_hash_handle hh;
    char *name;
    size_t name_len;
    uint32_t id; /* never used twice, not 0; a user that is made again is another one */
    unsigned refs;
    bool gone;
    struct permissions terms;
};

struct acl;

/* With the user default, who may do anything without password. */
struct acl *acl_new(const struct acl_catalog *catalog);
/* All references must have been given back, but those of acl itself. Accepts NULL. */
void acl_free(struct acl *a);

const struct acl_catalog *acl_catalog(const struct acl *a);
struct acl_user *acl_default(const struct acl *a);
struct acl_user *acl_find(const struct acl *a, struct span name); /* NULL: not there */
size_t acl_count(const struct acl *a);
/* By name. */
typedef void acl_user_fn(void *ctx, struct acl_user *user);
void acl_each(const struct acl *a, acl_user_fn *fn, void *ctx);

struct acl_user *acl_ref(struct acl_user *user);
void acl_unref(struct acl_user *user); /* accepts NULL */

/* Makes or changes a user: all rules are applied, or none, and then reterr has the
 * text of the error. The user must be gone through again by whoever serves it. */
struct acl_user *acl_set(struct acl *a, struct span name, const struct span *rules,
                         size_t count, char *reterr, size_t room);
/* False: there is no such user. Not for default. */
bool acl_delete(struct acl *a, struct span name);
/* The one password of default; empty: it needs none. */
void acl_set_password(struct acl *a, struct span password);

/* The user, if that is a password of his and he is on; NULL: no. Takes as long if there
 * is no such user. */
struct acl_user *acl_login(const struct acl *a, struct span name, struct span password);
/* Nobody needs to say who he is: default is on and needs no password. */
bool acl_is_open(const struct acl *a);

/* --- aclfile.c -------------------------------------------------------- */

/* Users as a file has them, `user name rule ...` on a line. All of them replace all of
 * those that are there, or nothing is changed, and reterr says what is wrong, by
 * `name` and line. Users that are not in it are gone; default is as it was at first
 * then, with `password` if that is not empty. *ret_default: the file has default. */
bool acl_load(struct acl *a, const char *name, struct span text, struct span password,
              bool *ret_default, struct buf *reterr)
    __attribute__((warn_unused_result));
void acl_save(const struct acl *a, struct buf *out);
/* "user name on ...", without end of line. */
void acl_describe(const struct acl *a, const struct acl_user *user, struct buf *out);

/* --- for aclfile.c ---------------------------------------------------- */

bool acl_name_fits(struct span name);
/* Takes the terms over. */
void acl_put(struct acl *a, struct span name, struct permissions *terms);
/* Deletes who is not in that list of names. */
void acl_keep_only(struct acl *a, const struct span *names, size_t count);

#endif
