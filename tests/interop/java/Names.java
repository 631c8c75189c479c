import java.util.List;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/** Locks by the words that a line names them with. */
final class Names {
    private final List<RedissonClient> nodes;

    Names(List<RedissonClient> nodes) {
        this.nodes = nodes;
    }

    /** Of a multi lock {@code name} is several, with commas, taken in that order. */
    RLock lock(String kind, String name) {
        switch (kind) {
            case "plain":
                return nodes.get(0).getLock(name);
            case "fenced":
                return nodes.get(0).getFencedLock(name);
            case "spin":
                return nodes.get(0).getSpinLock(name);
            case "fair":
                return nodes.get(0).getFairLock(name);
            case "read":
                return both(name).readLock();
            case "write":
                return both(name).writeLock();
            case "multi":
                return several("plain", name.split(","));
            case "multifair":
                return several("fair", name.split(","));
            case "red":
                return new RedissonRedLock(everywhere(name));
            case "all":
                return new RedissonMultiLock(everywhere(name));
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

    /** The lock of that name at each of several masters. */
    private RLock[] everywhere(String name) {
        return nodes.stream().map(node -> node.getLock(name)).toArray(RLock[]::new);
    }

    RReadWriteLock both(String name) {
        return nodes.get(0).getReadWriteLock(name);
    }
}
