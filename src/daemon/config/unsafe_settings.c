#include "daemon/config/unsafe_settings.h"

#include "http/host.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESS_ROOM = 64 /* longer texts are no addresses, as config has checked */ };

/* Whether other machines can connect by TCP without TLS. */
static bool others_can_reach(const struct config *c)
{
    bool listens = c->port != 0 || (c->unixsocket[0] == '\0' && c->tls_port == 0);
    char word[ADDRESS_ROOM];

    if (!listens) {
        return false;
    }
    for (const char *at = c->bind; *at != '\0';) {
        size_t len = strcspn(at, " ");

        (void)snprintf(word, sizeof(word), "%.*s", (int)len, at);
        if (len > 0 && !host_is_loopback(word)) {
            return true;
        }
        at += len + (at[len] == ' ' ? 1 : 0);
    }
    return false;
}

static bool has_password(const struct config *c)
{
    return c->requirepass[0] != '\0' || c->aclfile[0] != '\0';
}

/* Whether the URL has a password: config_show() puts stars in its place. */
static bool url_has_password(const struct config *c)
{
    const struct config_key *key = config_key_find(SPAN("redis"));
    struct buf whole = { 0 }, shown = { 0 };
    bool has;

    config_format(c, key, &whole);
    config_show(c, key, &shown);
    has = !span_eq(buf_span(&whole), buf_span(&shown));
    buf_reset(&whole);
    buf_reset(&shown);
    return has;
}

static void warn_of_open_access(const struct config *c)
{
    bool others = others_can_reach(c);

    if (!has_password(c) && others && !c->cmd.protected_mode) {
        log_warning("server",
                    "nobody is asked for a password, and protected-mode is no: whoever "
                    "can reach %s can take and free every lock: set requirepass or "
                    "aclfile",
                    c->bind);
    }
    if (has_password(c) && others) {
        log_warning("server",
                    "passwords of clients from other machines cross the network for "
                    "all to read: set tls-port and port 0");
    }
    if (!has_password(c) && c->unixsocket[0] != '\0' &&
        (c->unixsocketperm & S_IWOTH) != 0) {
        log_warning("server",
                    "nobody is asked for a password, and everybody on this machine can "
                    "write to %s: take permissions from unixsocketperm",
                    c->unixsocket);
    }
}

static void warn_of_file(const char *key, const char *path)
{
    struct stat st;

    if (path[0] != '\0' && stat(path, &st) == 0 && (st.st_mode & S_IROTH) != 0) {
        log_warning("server",
                    "everybody on this machine can read the secrets in %s%s%s: take "
                    "that permission away (chmod o=)",
                    key, key[0] == '\0' ? "" : " ", path);
    }
}

/* Whether the word sets this key: `--key` or `--key=value`. */
static bool is_key(const char *word, const char *key)
{
    size_t len = strlen(key);

    return strncmp(word, "--", 2) == 0 && strncmp(word + 2, key, len) == 0 &&
           (word[2 + len] == '\0' || word[2 + len] == '=');
}

static bool is_in_arguments(const struct options *o, const char *key)
{
    for (int i = 0; i < o->argc; i++) {
        if (is_key(o->argv[i], key)) {
            return true;
        }
    }
    return false;
}

static void warn_of_secrets(const struct options *o, const struct config *c)
{
    static const char *const KEYS[] = { "requirepass", "redis" };
    const bool secret[] = { c->requirepass[0] != '\0', url_has_password(c) };
    bool in_file = false;

    for (size_t i = 0; i < sizeof(KEYS) / sizeof(KEYS[0]); i++) {
        bool in_arguments = secret[i] && is_in_arguments(o, KEYS[i]);

        if (in_arguments) {
            log_warning("server",
                        "everybody on this machine can see the password of --%s in the "
                        "list of processes: put it into a file, and name that with "
                        "--config",
                        KEYS[i]);
        }
        in_file = in_file || (secret[i] && !in_arguments);
    }
    if (in_file && o->config_path != NULL) {
        warn_of_file("", o->config_path);
    }
    warn_of_file("redis-password-file", c->redis_password_file);
    warn_of_file("tls-key-file", c->tls_key_file);
    warn_of_file("redis-tls-key-file", c->redis_tls_key_file);
}

void unsafe_warn(const struct options *options, const struct config *c)
{
    if (geteuid() == 0) {
        log_warning("server", "it runs as root, and needs no privileges at all: start "
                              "it as another user");
    }
    warn_of_open_access(c);
    warn_of_secrets(options, c);
}
