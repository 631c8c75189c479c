#include "http/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 255 };

static bool is_local_name(const char *host, size_t len)
{
    static const char NAME[] = "localhost";
    size_t want = sizeof(NAME) - 1;

    if (len > 0 && host[len - 1] == '.') {
        len--;
    }
    return len >= want && strncasecmp(host + len - want, NAME, want) == 0 &&
           (len == want || host[len - want - 1] == '.');
}

bool host_is_numeric_or_local(const char *host)
{
    char name[HOST_MAX + 1];
    unsigned char addr[sizeof(struct in6_addr)];
    const char *end;
    size_t len;

    if (host[0] == '[') {
        end = strchr(host, ']');
        host++;
    } else {
        end = host + strcspn(host, ":");
    }
    if (end == NULL || end - host > HOST_MAX) {
        return false;
    }
    len = (size_t)(end - host);
    memcpy(name, host, len);
    name[len] = '\0';
    return is_local_name(name, len) || inet_pton(AF_INET, name, addr) == 1 ||
           inet_pton(AF_INET6, name, addr) == 1;
}

bool host_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, address, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == 127;
    }
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
