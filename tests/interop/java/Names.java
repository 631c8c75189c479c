import org.redisson.RedissonMultiLock;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/** Locks by the words that a line names them with. */
final class Names {
    private final RedissonClient redisson;

    Names(RedissonClient redisson) {
        this.redisson = redisson;
    }

    /** Of a multi lock {@code name} is several, with commas, taken in that order. */
    RLock lock(String kind, String name) {
        switch (kind) {
            case "plain":
                return redisson.getLock(name);
            case "fenced":
                return redisson.getFencedLock(name);
            case "spin":
                return redisson.getSpinLock(name);
            case "fair":
                return redisson.getFairLock(name);
            case "read":
                return both(name).readLock();
            case "write":
                return both(name).writeLock();
            case "multi":
                return several("plain", name.split(","));
            case "multifair":
                return several("fair", name.split(","));
            default:
                throw new IllegalArgumentException("unknown kind " + kind);
        }
    }

    private RLock several(String kind, String[] names) {
        RLock[] locks = new RLock[names.length];
        for (int i = 0; i < names.length; i++) {
            locks[i] = lock(kind, names[i]);
        }
        return new RedissonMultiLock(locks);
    }

    RReadWriteLock both(String name) {
        return redisson.getReadWriteLock(name);
    }
}
