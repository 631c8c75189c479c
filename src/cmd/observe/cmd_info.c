/* INFO: which sections, in Redis's order. */
#include "cmd/handlers.h"
#include "cmd/observe/info.h"

#include <ctype.h>

enum section_group {
    BY_DEFAULT, /* also without arguments */
    IN_ALL,     /* with `all` and `everything` */
};

static const struct {
    const char *name;
    info_fn *write;
    enum section_group group;
} SECTIONS[] = {
    { "Server", info_server, BY_DEFAULT },
    { "Clients", info_clients, BY_DEFAULT },
    { "Memory", info_memory, BY_DEFAULT },
    { "Persistence", info_persistence, BY_DEFAULT },
    { "Stats", info_stats, BY_DEFAULT },
    { "Locks", info_locks, BY_DEFAULT },
    { "Watchdog", info_watchdog, BY_DEFAULT },
    { "Redis", info_redis, BY_DEFAULT },
    { "Latency", info_latency, BY_DEFAULT },
    { "Replication", info_replication, BY_DEFAULT },
    { "CPU", info_cpu, BY_DEFAULT },
    { "Commandstats", info_commandstats, IN_ALL },
    { "Errorstats", info_errorstats, BY_DEFAULT },
    { "Latencystats", info_latencystats, IN_ALL },
    { "Cluster", info_cluster, BY_DEFAULT },
    { "Keyspace", info_keyspace, BY_DEFAULT },
};

enum { SECTION_COUNT = sizeof(SECTIONS) / sizeof(SECTIONS[0]) };

static bool is_section_wanted(const struct command_ctx *ctx, size_t section)
{
    bool by_default = SECTIONS[section].group == BY_DEFAULT;

    if (ctx->argc == 1) {
        return by_default;
    }
    for (size_t i = 1; i < ctx->argc; i++) {
        if (ctx_arg_is(ctx, i, "all") || ctx_arg_is(ctx, i, "everything") ||
            ctx_arg_is(ctx, i, SECTIONS[section].name) ||
            (ctx_arg_is(ctx, i, "default") && by_default)) {
            return true;
        }
    }
    return false;
}

static void write_section(struct cmd *c, size_t section, struct buf *out)
{
    char name[32];
    size_t len = strlen(SECTIONS[section].name);

    for (size_t i = 0; i <= len; i++) {
        name[i] = (char)tolower((unsigned char)SECTIONS[section].name[i]);
    }
    buf_printf(out, "%s# %s\r\n", buf_len(out) == 0 ? "" : "\r\n",
               SECTIONS[section].name);
    SECTIONS[section].write(c, out);
    if (c->env.info != NULL) {
        c->env.info(c->env.ctx, name, out);
    }
}

void cmd_info(struct command_ctx *ctx)
{
    struct buf text = { 0 };

    for (size_t i = 0; i < SECTION_COUNT; i++) {
        if (is_section_wanted(ctx, i)) {
            write_section(ctx->cmd, i, &text);
        }
    }
    resp_verbatim(ctx->out, ctx->proto, buf_span(&text));
    buf_reset(&text);
}
