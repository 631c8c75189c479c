import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;

/**
 * Enters again and again until a guarded value has counted far enough: {@code contend KIND NAME
 * VALUE ME TARGET PAUSE_US}. It comes to the number of changes, the longest wait in
 * microseconds, how often the change before was from the other side, and how often it only
 * looked.
 */
final class Contender {
    private static final long LEASE_MS = 30_000;
    private static final long WAIT_MS = 60_000;
    private static final long TRY_MS = 25;
    private final Names names;
    private final String kind;
    private final String name;
    private final Guarded guarded;
    private final long pauseUs;
    private long changes;
    private long longestUs;
    private long crossings;
    private long looks;

    Contender(Client client, String[] words) {
        names = client.names;
        kind = words[3];
        name = words[4];
        guarded = new Guarded(client.data(), words[5], words[6], Long.parseLong(words[7]));
        pauseUs = Long.parseLong(words[8]);
    }

    String run() throws InterruptedException {
        boolean more = true;
        for (int i = 0; more; i++) {
            if (kind.equals("rw")) {
                more = readOrWrite(names.both(name), i % 6);
            } else {
                more = alone(names.lock(kind, name), insistent() ? 4 : i % 4);
            }
            pause();
        }
        return changes + " " + longestUs + " " + crossings + " " + looks;
    }

    /** Of several locks, all of which are wanted. */
    private boolean insistent() {
        return kind.equals("multi") || kind.equals("all");
    }

    private boolean alone(RLock lock, int way) throws InterruptedException {
        int times = enter(lock, way);
        boolean more = counted(guarded.change());
        for (int t = 0; t < times; t++) {
            lock.unlock();
        }
        return more;
    }

    private boolean readOrWrite(RReadWriteLock both, int way) throws InterruptedException {
        RLock lock = way < 4 ? both.readLock() : both.writeLock();
        int times = enter(lock, way % 4);
        boolean more;
        if (way < 4) {
            more = guarded.look();
            looks++;
        } else {
            more = counted(guarded.changeUnread());
        }
        if (way == 5) {
            both.readLock().lock();
            lock.unlock();
            more = guarded.look();
            looks++;
            both.readLock().unlock();
            times--;
        }
        for (int t = 0; t < times; t++) {
            lock.unlock();
        }
        return more;
    }

    private boolean counted(boolean changed) {
        if (changed) {
            changes++;
            crossings += guarded.crossed() ? 1 : 0;
        }
        return changed;
    }

    /** Somewhere else for a while, up to twice the pause. */
    private void pause() throws InterruptedException {
        if (pauseUs > 0) {
            TimeUnit.MICROSECONDS.sleep(ThreadLocalRandom.current().nextLong(2 * pauseUs));
        }
    }

    /** The ways to take a lock; says how often it was entered. */
    private int enter(RLock lock, int way) throws InterruptedException {
        long began = System.nanoTime();
        if (way == 0) {
            lock.lock();
        } else if (way == 1) {
            lock.lock(LEASE_MS, TimeUnit.MILLISECONDS);
        } else if (way == 4) {
            insist(lock, began);
        } else if (!lock.tryLock(WAIT_MS, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("not got in " + WAIT_MS + " ms");
        }
        longestUs = Math.max(longestUs, (System.nanoTime() - began) / 1000);
        if (way == 3) {
            lock.lock();
            return 2;
        }
        return 1;
    }

    /** A multi lock does not get on against the order of others unless it lets go again. */
    private static void insist(RLock lock, long began) throws InterruptedException {
        long end = began + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
        ThreadLocalRandom random = ThreadLocalRandom.current();
        while (!lock.tryLock(random.nextLong(TRY_MS / 5, TRY_MS), TimeUnit.MILLISECONDS)) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("not got in " + WAIT_MS + " ms");
            }
        }
    }
}
