import java.util.ArrayList;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisConnectionException;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

/**
 * Redisson as an application sets it up: {@code single PORT}, {@code cluster PORT,PORT...}, or
 * {@code quorum PORT,PORT...}, a RedissonClient for each of several masters. {@code
 * plain-cluster}: it listens to no sharded channels, as before 3.22. Behind it the timeout of
 * the watchdog and a waiter's share of a fair queue's deadlines, in ms.
 */
final class Client {
    private static final int QUORUM_TIMEOUT_MS = 300;
    private static final int OPEN_TRIES = 20;
    final List<RedissonClient> nodes = new ArrayList<>();
    final Names names = new Names(nodes);

    Client(String topology, String ports, long watchdogMs, long fairWaitMs) {
        String[] urls = ("redis://127.0.0.1:" + ports.replace(",", ",redis://127.0.0.1:"))
                .split(",");
        switch (topology) {
            case "single":
                open(urls[0], config(watchdogMs, fairWaitMs), false);
                break;
            case "quorum":
                for (String url : urls) {
                    open(url, config(watchdogMs, fairWaitMs), true);
                }
                break;
            case "cluster":
            case "plain-cluster":
                Config config = config(watchdogMs, fairWaitMs);
                pools(config.useClusterServers().addNodeAddress(urls));
                RedissonClient client = Redisson.create(config);
                if (topology.equals("plain-cluster")) {
                    listenToNoShards((Redisson) client);
                }
                nodes.add(client);
                break;
            default:
                throw new IllegalArgumentException("unknown topology " + topology);
        }
    }

    /** Where everything is that is no lock. */
    RedissonClient data() {
        return nodes.get(0);
    }

    private void open(String url, Config config, boolean oneOfMany) {
        var server = config.useSingleServer()
                .setAddress(url)
                .setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(24)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(12);
        if (oneOfMany) {
            hasty(server);
        }
        nodes.add(connected(config));
    }

    /** Its timeout also bounds how it begins, and a machine that starts JVMs is busy. */
    private static RedissonClient connected(Config config) {
        for (int tries = 1;; tries++) {
            try {
                return Redisson.create(config);
            } catch (RedisConnectionException e) {
                if (tries == OPEN_TRIES) {
                    throw e;
                }
            }
        }
    }

    /** RedLock asks one master after the other: one that is away is not to be waited for. */
    private static void hasty(BaseConfig<?> server) {
        server.setTimeout(QUORUM_TIMEOUT_MS).setRetryAttempts(0);
        server.setConnectTimeout(QUORUM_TIMEOUT_MS);
    }

    /** Older ones have no setting, and find out by themselves, by chance. */
    private static void listenToNoShards(Redisson redisson) {
        redisson.getCommandExecutor()
                .getConnectionManager()
                .getSubscribeService()
                .setShardingSupported(false);
    }

    /** What locks guard is read where it is written: replicas are late. */
    private static void pools(BaseMasterSlaveServersConfig<?> servers) {
        servers.setReadMode(ReadMode.MASTER)
                .setMasterConnectionMinimumIdleSize(2)
                .setMasterConnectionPoolSize(24)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(12);
    }

    private static Config config(long watchdogMs, long fairWaitMs) {
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(4);
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        setFairWait(config, fairWaitMs);
        return config;
    }

    /** Versions before 3.46 have no such setting. */
    private static void setFairWait(Config config, long ms) {
        try {
            Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, ms);
        } catch (NoSuchMethodException e) {
            return;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
