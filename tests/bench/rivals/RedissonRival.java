import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson's lock, or its semaphore of 10, one client for all threads, as an application has it.
 */
public final class RedissonRival {
    private static final int PERMITS = 10;

    private static Loop.Held permit(RedissonClient client, String name) {
        RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(name);
        semaphore.trySetPermits(PERMITS);
        return new Loop.Held() {
            private String id;

            @Override
            public void take() throws InterruptedException {
                id = semaphore.acquire();
            }

            @Override
            public void give() {
                semaphore.release(id);
            }
        };
    }

    private static Loop.Held lock(RedissonClient client, String name) {
        RLock lock = client.getLock(name);
        return new Loop.Held() {
            @Override
            public void take() {
                lock.lock();
            }

            @Override
            public void give() {
                lock.unlock();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.useSingleServer() // with a timeout that makes a busy machine no failure
                .setAddress(args[0])
                .setConnectionPoolSize(Integer.parseInt(args[2]))
                .setConnectionMinimumIdleSize(16)
                .setSubscriptionsPerConnection(500)
                .setTimeout(60000);
        RedissonClient client = Redisson.create(config);
        boolean permits = args[1].equals("permits");
        Loop.measure(
                name -> permits ? permit(client, "rival:pool") : lock(client, "rival:" + name),
                args);
    }
}
