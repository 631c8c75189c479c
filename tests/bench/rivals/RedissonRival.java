import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's lock, one client for all threads, as an application has it. */
public final class RedissonRival {
    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.useSingleServer() // with a timeout that makes a busy machine no failure
                .setAddress(args[0])
                .setConnectionPoolSize(Integer.parseInt(args[2]))
                .setConnectionMinimumIdleSize(16)
                .setSubscriptionsPerConnection(500)
                .setTimeout(60000);
        RedissonClient client = Redisson.create(config);
        Loop.measure(
                name -> {
                    RLock lock = client.getLock("rival:" + name);
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
                },
                args);
    }
}
