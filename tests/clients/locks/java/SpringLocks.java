import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.concurrent.TimeUnit;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.support.locks.DistributedLock;

/** Spring Integration's RedisLockRegistry. Its key is `locks:` and the name. */
class SpringLocks implements Library {
    private final LettuceConnectionFactory factory;
    private final RedisLockRegistry.RedisLockType type;

    SpringLocks(LettuceConnectionFactory factory, RedisLockRegistry.RedisLockType type) {
        this.factory = factory;
        this.type = type;
    }

    @Override
    public Held acquire(String name, long leaseMs, long waitMs) throws Exception {
        // Each registry has a value of its own; its locks re-enter.
        RedisLockRegistry registry = new RedisLockRegistry(factory, "locks", leaseMs);
        registry.setRedisLockType(type);
        DistributedLock lock = registry.obtain(name);
        if (!lock.tryLock(Duration.ofMillis(waitMs), Duration.ofMillis(leaseMs))) {
            registry.destroy();
            return null;
        }
        return new Held() {
            @Override
            public boolean extend(long ms) {
                try {
                    registry.renewLock(name, Duration.ofMillis(ms));
                    return true;
                } catch (IllegalStateException e) {
                    return false;
                }
            }

            @Override
            public boolean release() {
                try {
                    lock.unlock();
                    return true;
                } catch (ConcurrentModificationException e) {
                    return false;
                } finally {
                    registry.destroy(); // who waited has subscribed
                }
            }
        };
    }
}
