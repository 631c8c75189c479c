import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * What a lock guards: a value in Redis, {@code ME|count} while somebody changes it, {@code
 * free-ME|count} after, and beside it the number of those who read it. Nothing about a change
 * is atomic, so two in the lock at a time meet in it sooner or later.
 */
final class Guarded {
    private final RBucket<String> value;
    private final RAtomicLong readers;
    private final String me;
    private final long target;
    private boolean crossed;

    Guarded(RedissonClient redisson, String name, String me, long target) {
        value = redisson.getBucket(name, StringCodec.INSTANCE);
        readers = redisson.getAtomicLong(name + ":readers");
        this.me = me;
        this.target = target;
    }

    /** One count on, alone; false when the target is reached. */
    boolean change() {
        String before = quiet();
        long count = count(before);
        if (count >= target) {
            return false;
        }
        String mine = me + "|" + (count + 1);
        value.set(mine);
        expect(mine, value.get());
        value.set("free-" + mine);
        crossed = !before.startsWith("free-" + me.charAt(0));
        return true;
    }

    /** As {@link #change}, and nobody reads. */
    boolean changeUnread() {
        expect("0", readers.get() + "");
        boolean more = change();
        expect("0", readers.get() + "");
        return more;
    }

    /** Nobody changes it; false when the target is reached. */
    boolean look() {
        readers.incrementAndGet();
        String before = quiet();
        expect(before, value.get());
        readers.decrementAndGet();
        return count(before) < target;
    }

    /** Was the one before the last change from the other side? */
    boolean crossed() {
        return crossed;
    }

    private String quiet() {
        String now = value.get();
        if (!now.startsWith("free-")) {
            throw new IllegalStateException(me + " came in and found " + now);
        }
        return now;
    }

    private void expect(String what, String found) {
        if (!what.equals(found)) {
            throw new IllegalStateException(me + " expected " + what + " and found " + found);
        }
    }

    private static long count(String text) {
        return Long.parseLong(text.substring(text.indexOf('|') + 1));
    }
}
