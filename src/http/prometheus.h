/* prometheus: writes metrics as Prometheus reads them, text format 0.0.4.
 *
 * A family (one HELP, one TYPE) is begun, then its samples follow; the caller sees to
 * it that a family is begun once and that names fit their type: counters end in
 * `_total`, times are in seconds, sizes in bytes. Label values may be any bytes. */
#ifndef LATCHD_HTTP_PROMETHEUS_H
#define LATCHD_HTTP_PROMETHEUS_H

#include "util/buf.h"
#include "util/histogram.h"

#include <stdint.h>

#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* `type`: "counter", "gauge". `help` is one line. */
void prom_family(struct buf *out, const char *name, const char *type, const char *help);

/* One sample; `labels` as prom_label() made them, or NULL. */
void prom_uint(struct buf *out, const char *name, const struct buf *labels,
               uint64_t value);
/* The value is `millionths` / 1,000,000: seconds from microseconds. */
void prom_seconds(struct buf *out, const char *name, const struct buf *labels,
                  uint64_t millionths);

/* Adds name="value" to `labels`, escaped. Bytes that are not UTF-8 are replaced. */
void prom_label(struct buf *labels, const char *name, struct span value);

/* A family with one histogram in seconds. Its buckets end at powers of two of
 * microseconds, from 2^first to 2^last us. */
struct prom_range {
    unsigned first, last;
};
void prom_histogram(struct buf *out, const char *name, const char *help,
                    struct prom_range range, const struct histogram *h);

/* A family with one sample. */
void prom_gauge(struct buf *out, const char *name, const char *help, uint64_t value);
void prom_counter(struct buf *out, const char *name, const char *help, uint64_t value);

#endif
