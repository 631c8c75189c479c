#include "daemon/tls_certs.h"

#include "backend/backend_config.h"
#include "daemon/server.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    DAY_S = 86400,
    DAY_MS = DAY_S * 1000,
    WARN_DAYS = 14, /* warns when a certificate expires sooner */
};

static bool read_clients(const struct config *c, struct tls **ret, char *reterr,
                         size_t room)
{
    struct tls_files files = {
        .cert_file = c->tls_cert_file,
        .key_file = c->tls_key_file,
        .ca_cert_file = c->tls_ca_cert_file,
        .ca_cert_dir = c->tls_ca_cert_dir,
        .auth_clients = c->tls_auth_clients,
    };

    if (c->tls_port == 0 && c->tls_cert_file[0] == '\0') {
        return true;
    }
    if (!tls_is_built()) {
        (void)snprintf(reterr, room, "%s: this latchd was built without TLS",
                       c->tls_port != 0 ? "tls-port" : "tls-cert-file");
        return false;
    }
    *ret = tls_new(&files, reterr, room);
    return *ret != NULL;
}

/* Whether `redis` needs TLS. The embedded Redis does not; mistakes are reported
 * elsewhere. */
static bool wants_tls(const char *redis)
{
    struct backend_config place;
    const char *mistake;
    bool wants;

    if (!backend_config_parse(redis, &place, &mistake)) {
        return false;
    }
    wants = backend_config_wants_tls(&place);
    backend_config_fini(&place);
    return wants;
}

static bool read_redis(const struct config *c, struct tls **ret, char *reterr,
                       size_t room)
{
    static const struct tls_names NAMES = { "redis-tls-cert-file", "redis-tls-key-file",
                                            "redis-tls-ca-cert-file", "" };
    struct tls_files files = {
        .names = &NAMES,
        .cert_file = c->redis_tls_cert_file,
        .key_file = c->redis_tls_key_file,
        .ca_cert_file = c->redis_tls_ca_cert_file,
        .ca_cert_dir = "",
    };

    if (!wants_tls(c->redis)) {
        return true;
    }
    if (!tls_is_built()) {
        (void)snprintf(reterr, room, "redis: this latchd was built without TLS");
        return false;
    }
    *ret = tls_new_client(&files, reterr, room);
    return *ret != NULL;
}

bool tls_certs_read(const struct config *c, struct tls_certs *ret, char *reterr,
                    size_t room)
{
    *ret = (struct tls_certs){ 0 };
    if (read_clients(c, &ret->clients, reterr, room) &&
        read_redis(c, &ret->redis, reterr, room)) {
        return true;
    }
    tls_certs_fini(ret);
    return false;
}

void tls_certs_fini(struct tls_certs *sec)
{
    tls_unref(sec->clients);
    tls_unref(sec->redis);
    *sec = (struct tls_certs){ 0 };
}

static void warn_of_end(const struct server *s)
{
    int64_t valid_s = tls_valid_s(s->tls);

    if (valid_s <= 0) {
        log_warning("tls",
                    "the certificate of tls-cert-file is not valid any more, clients "
                    "will refuse it: replace it and send SIGHUP");
    } else if (valid_s < (int64_t)WARN_DAYS * DAY_S) {
        log_warning("tls",
                    "the certificate of tls-cert-file runs out in %" PRId64
                    " days: replace it and send SIGHUP",
                    valid_s / DAY_S);
    }
}

static void use_for_clients(struct server *s, struct tls *tls)
{
    bool has_ca =
        s->config.tls_ca_cert_file[0] != '\0' || s->config.tls_ca_cert_dir[0] != '\0';

    net_set_tls(s->net, tls);
    tls_unref(s->tls);
    s->tls = tls_ref(tls);
    s->next_cert_ms = s->now_ms + DAY_MS;
    warn_of_end(s);
    if (has_ca && s->config.tls_auth_clients == TLS_AUTH_NO) {
        log_warning("tls",
                    "tls-auth-clients is no, so clients need no certificate, and "
                    "tls-ca-cert-file has no use: set it to yes or optional");
    }
}

void tls_certs_use(struct server *s, struct tls_certs *sec)
{
    if (sec->clients != NULL) {
        use_for_clients(s, sec->clients);
    }
    if (sec->redis != NULL) {
        store_set_tls(s->store, sec->redis);
    }
    tls_certs_fini(sec);
}

void tls_certs_tick(struct server *s)
{
    if (s->tls != NULL && s->now_ms >= s->next_cert_ms) {
        s->next_cert_ms = s->now_ms + DAY_MS;
        warn_of_end(s);
    }
}
