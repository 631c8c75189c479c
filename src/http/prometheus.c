#include "http/prometheus.h"

#include "util/text.h"

#include <inttypes.h>

void prom_family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void begin_sample(struct buf *out, const char *name, const struct buf *labels)
{
    buf_add_str(out, name);
    if (labels != NULL && buf_len(labels) > 0) {
        buf_add_str(out, "{");
        buf_add_span(out, buf_span(labels));
        buf_add_str(out, "}");
    }
    buf_add_str(out, " ");
}

void prom_uint(struct buf *out, const char *name, const struct buf *labels,
               uint64_t value)
{
    begin_sample(out, name, labels);
    buf_printf(out, "%" PRIu64 "\n", value);
}

/* Decimal, without zeros at the end: no rounding, and the same in every locale. */
static void add_seconds(struct buf *out, uint64_t us)
{
    uint64_t rest = us % 1000000;
    int digits = 6;

    buf_printf(out, "%" PRIu64, us / 1000000);
    if (rest == 0) {
        return;
    }
    while (rest % 10 == 0) {
        rest /= 10;
        digits--;
    }
    buf_printf(out, ".%0*" PRIu64, digits, rest);
}

void prom_seconds(struct buf *out, const char *name, const struct buf *labels,
                  uint64_t millionths)
{
    begin_sample(out, name, labels);
    add_seconds(out, millionths);
    buf_add_str(out, "\n");
}

static void add_escaped(struct buf *out, struct span value)
{
    static const char REPLACEMENT[] = "\xef\xbf\xbd";

    while (value.len > 0) {
        uint32_t code;
        size_t len = utf8_decode(value, &code);

        if (len == 0) {
            buf_add_str(out, REPLACEMENT);
            len = 1;
        } else if (code == '\n') {
            buf_add_str(out, "\\n");
        } else {
            if (code == '"' || code == '\\') {
                buf_add_str(out, "\\");
            }
            buf_add(out, value.ptr, len);
        }
        value = span_after(value, len);
    }
}

void prom_label(struct buf *labels, const char *name, struct span value)
{
    buf_printf(labels, "%s%s=\"", buf_len(labels) == 0 ? "" : ",", name);
    add_escaped(labels, value);
    buf_add_str(labels, "\"");
}

void prom_histogram(struct buf *out, const char *name, const char *help,
                    struct prom_range range, const struct histogram *h)
{
    prom_family(out, name, "histogram", help);
    for (unsigned octave = range.first; octave <= range.last; octave++) {
        buf_printf(out, "%s_bucket{le=\"", name);
        add_seconds(out, (uint64_t)1 << octave);
        buf_printf(out, "\"} %" PRIu64 "\n", histogram_within(h, octave));
    }
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name, h->count,
               name);
    add_seconds(out, h->sum_us);
    buf_printf(out, "\n%s_count %" PRIu64 "\n", name, h->count);
}

void prom_gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
    prom_family(out, name, "gauge", help);
    prom_uint(out, name, NULL, value);
}

void prom_counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
    prom_family(out, name, "counter", help);
    prom_uint(out, name, NULL, value);
}
