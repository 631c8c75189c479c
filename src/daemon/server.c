#include "daemon/server.h"

#include "util/log.h"

bool server_main(const struct options *options, const struct config *config)
{
    log_setup((enum log_level)config->log_level, (enum log_format)config->log_format);
    log_error("server", "this build has no lock engine yet");
    return false;
}
