#include "daemon/server_state.h"

#include "cmd/observe/stats.h"

#include <inttypes.h>
#include <string.h>

/* --- the numbers of stats.def that cmd/ cannot read ------------------- */

void server_stats(void *ctx, struct stats *ret)
{
    const struct server *s = ctx;
    struct store_info store;

    store_info(s->store, &store);
#define READ_CMD(set)
#define READ_CLIENTS(set)
#define READ_DAEMON(set) set;
#define READ_SENTINEL(set)                                                             \
    if (store.sentinel.master != NULL) {                                               \
        set;                                                                           \
    }
#define READ_QUORUM(set)                                                               \
    if (store.quorum.servers != 0) {                                                   \
        set;                                                                           \
    }
#define STAT(name, section, reader, value, ...)                                        \
    READ_##reader(STAT_SET(ret, STAT_##name, value))
#define TIMES(name, section, reader, value, ...)                                       \
    READ_##reader(STAT_SET_TIMES(ret, STAT_##name, value))
#include "cmd/observe/stats.def"
}

/* --- the rest of INFO ------------------------------------------------- */

struct node_list {
    struct buf *out;
    size_t count;
};

static void write_node(void *ctx, const struct store_node_info *node)
{
    struct node_list *list = ctx;

    buf_printf(list->out,
               "redis_node%zu:address=%s,role=%s,up=%d,reconnects=%" PRIu64
               ",calls_in_flight=%" PRIu64 ",round_trip_us=%" PRIu64 "\r\n",
               list->count++, node->address, node->role, node->up ? 1 : 0,
               node->reconnects, node->in_flight, node->round_trip_us);
}

static void redis_section(struct server *s, struct buf *out)
{
    struct node_list nodes = { .out = out };
    struct store_info info;

    store_info(s->store, &info);
    buf_printf(out, "redis_kind:%s\r\n",
               s->embedded != NULL ? "embedded" : info.topology);
    buf_printf(out, "redis_address:%s\r\n", info.address);
    buf_printf(out, "redis_server_name:%s\r\nredis_server_version:%s\r\n", info.product,
               info.version);
    buf_printf(out, "redis_run_id:%s\r\n", info.run_id);
    buf_printf(out, "redis_trouble:%s\r\n", info.why_not == NULL ? "" : info.why_not);
    if (info.sentinel.master != NULL) {
        buf_printf(out, "redis_master_name:%s\r\n", info.sentinel.master);
    }
    store_each_node(s->store, write_node, &nodes);
}

void info_section(void *ctx, const char *section, struct buf *out)
{
    struct server *s = ctx;

    if (strcmp(section, "Server") == 0) {
        buf_printf(out, "config_file:%s\r\n",
                   s->options->config_path == NULL ? "" : s->options->config_path);
    } else if (strcmp(section, "Redis") == 0) {
        redis_section(s, out);
    }
}
