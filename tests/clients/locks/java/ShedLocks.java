import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock. Its key is `job-lock:default:` and the name; it does not wait. */
class ShedLocks implements Library {
    private static final long POLL_MS = 100;
    private final LockProvider provider;

    ShedLocks(LettuceConnectionFactory factory) {
        provider = new RedisLockProvider(factory);
    }

    @Override
    public Held acquire(String name, long leaseMs, long waitMs) throws Exception {
        for (long waited = 0; ; waited += POLL_MS) {
            Optional<SimpleLock> lock = provider.lock(new LockConfiguration(
                    Instant.now(), name, Duration.ofMillis(leaseMs), Duration.ZERO));
            if (lock.isPresent()) {
                return new Lock(lock.get());
            }
            if (waited >= waitMs) {
                return null;
            }
            Thread.sleep(POLL_MS);
        }
    }

    private static class Lock implements Held {
        private SimpleLock lock;

        Lock(SimpleLock lock) {
            this.lock = lock;
        }

        @Override
        public boolean extend(long ms) {
            Optional<SimpleLock> longer = lock.extend(Duration.ofMillis(ms), Duration.ZERO);
            longer.ifPresent(extended -> lock = extended);
            return longer.isPresent();
        }

        @Override
        public boolean release() {
            lock.unlock();
            return true;
        }
    }
}
