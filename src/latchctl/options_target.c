#include "latchctl/options_priv.h"

#include "util/parse.h"

#include <getopt.h>
#include <stdlib.h>

static bool read_port(struct options *o, const char *text)
{
    uint64_t port;

    if (!parse_u64(span_str(text), 65535, &port) || port == 0) {
        return options_wrong("--port", "a port is a number from 1 to 65535");
    }
    target_set(&o->target.port, text);
    target_set(&o->target.path, NULL);
    return true;
}

static bool read_url(struct options *o, const char *option, const char *url)
{
    char err[TARGET_ERROR_MAX];

    return target_set_url(&o->target, url, err, sizeof(err)) ||
           options_wrong(option, err);
}

static void read_tls(struct target_tls *tls, int option)
{
    switch (option) {
    case OPT_TLS:
        tls->by_option = true;
        break;
    case OPT_INSECURE:
        tls->insecure = true;
        break;
    case OPT_SNI:
        target_set(&tls->sni, optarg);
        break;
    case OPT_CACERT:
        target_set(&tls->ca_cert_file, optarg);
        break;
    case OPT_CACERTDIR:
        target_set(&tls->ca_cert_dir, optarg);
        break;
    case OPT_CERT:
        target_set(&tls->cert_file, optarg);
        break;
    default:
        target_set(&tls->key_file, optarg);
        break;
    }
}

bool options_read_target(struct options *o, int option)
{
    switch (option) {
    case 'h':
        target_set(&o->target.host, optarg);
        target_set(&o->target.path, NULL);
        target_set_one(&o->target);
        return true;
    case 'p':
        return read_port(o, optarg);
    case 's':
        target_set(&o->target.path, optarg);
        o->target.tls.by_url = false;
        return true;
    case 'u':
        return read_url(o, "--uri", optarg);
    case 'a':
        target_set(&o->target.password, optarg);
        return true;
    case OPT_USER:
        target_set(&o->target.user, optarg);
        return true;
    default:
        read_tls(&o->target.tls, option);
        return true;
    }
}

bool options_read_environment(struct options *o)
{
    const char *url = getenv("LATCHD_URL");
    const char *password = getenv("LATCHCTL_AUTH");

    if (password == NULL) {
        password = getenv("REDISCLI_AUTH");
    }
    target_set(&o->target.password, password);
    return url == NULL || *url == '\0' || read_url(o, "LATCHD_URL", url);
}

bool options_check_target(const struct options *o)
{
    char err[TARGET_ERROR_MAX];

    return target_check_tls(&o->target, err, sizeof(err)) || options_wrong("TLS", err);
}
