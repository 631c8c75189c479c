/* acl: the users and their permissions. A struct acl owns its users. A reference, by
 * acl_ref() and acl_unref(), keeps a user across loop turns; a deleted user stays,
 * `gone`, until the last reference is dropped. The user `default` always exists. No
 * sockets, no clock, no files: acl_load() is passed the text. Times are milliseconds.
 */
#ifndef LATCHD_ACL_ACL_H
#define LATCHD_ACL_ACL_H

#include "acl/permissions.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acl;

enum {
    ACL_USERS_MAX = 10000,
    ACL_NAME_MAX = 128,         /* bytes of a user's name */
    ACL_FILE_MAX = 4 << 20,     /* bytes of a file of users */
    ACL_FILE_MISTAKES_MAX = 16, /* reported by one acl_load() */
    ACL_REASON_MAX = 512,       /* enough room for any reterr */
};

struct acl_user {
    struct table_node in_users; /* by the hash of its name */
    char *name;
    size_t name_len;
    uint32_t id; /* never reused, not 0: a user that is deleted and created again is
                    another one */
    unsigned refs;
    bool gone;
    struct permissions terms;
};

/* Creates an acl with the user `default`, who may do anything without a password. */
struct acl *acl_new(const struct acl_catalog *catalog);
/* Frees an acl. All references from outside must have been dropped. Accepts NULL. */
void acl_free(struct acl *a);

const struct acl_catalog *acl_catalog(const struct acl *a);
struct acl_user *acl_default(const struct acl *a);
struct acl_user *acl_find(const struct acl *a, struct span name); /* NULL: not there */
size_t acl_count(const struct acl *a);
/* Calls `fn` for each user, sorted by name. */
typedef void acl_user_fn(void *ctx, struct acl_user *user);
void acl_each(const struct acl *a, acl_user_fn *fn, void *ctx);

struct acl_user *acl_ref(struct acl_user *user);
void acl_unref(struct acl_user *user); /* accepts NULL */

/* Creates or changes a user. Either all rules are applied, or none; then reterr has
 * the error. The caller must check the connections of a changed user again. */
struct acl_user *acl_set(struct acl *a, struct span name, const struct span *rules,
                         size_t count, char *reterr, size_t room);
/* Deletes a user other than `default`. False: there is no such user. */
bool acl_delete(struct acl *a, struct span name);
/* Sets the only password of `default`; empty: it needs none. */
void acl_set_password(struct acl *a, struct span password);

/* Checks a login: the user if the password is right and the user is on, else NULL.
 * Takes equally long if there is no such user. */
struct acl_user *acl_login(const struct acl *a, struct span name, struct span password);
/* Whether no login is needed: `default` is on and needs no password. */
bool acl_is_open(const struct acl *a);

/* --- files of users --------------------------------------------------- */

/* Replaces all users by those of a file with lines `user name rule ...`. On failure
 * nothing is changed, and reterr says what is wrong, with `name` and line. Users that
 * are not in the file are gone; `default` is then as acl_new() makes it, with
 * `password` if that is not empty. *ret_default: the file has `default`. */
bool acl_load(struct acl *a, const char *name, struct span text, struct span password,
              bool *ret_default, struct buf *reterr)
    __attribute__((warn_unused_result));
void acl_save(const struct acl *a, struct buf *out);
/* Appends the user's line of an ACL file, "user name on ...", without its newline. */
void acl_describe(const struct acl *a, const struct acl_user *user, struct buf *out);

/* --- for config.c ---------------------------------------------------- */

#endif
