import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RAtomicLong;

/**
 * Takes permits again and again for a while, with a counter beside the semaphore of those that
 * are inside: {@code crowd permits NAME COUNTER LIMIT MS PAUSE_US}. It comes to the number of
 * entries, the permits of all of them, the most that were ever inside, and the longest wait in
 * microseconds.
 */
final class Crowd {
    private static final long LEASE_MS = 30_000;
    private static final long WAIT_MS = 60_000;
    private static final int MOST = 2;
    private final Permits semaphore;
    private final RAtomicLong inside;
    private final long limit;
    private final long endNs;
    private final long pauseUs;
    private long entries;
    private long permits;
    private long highest;
    private long longestUs;

    Crowd(Permits semaphore, Client client, String[] words) {
        this.semaphore = semaphore;
        inside = client.data().getAtomicLong(words[0]);
        limit = Long.parseLong(words[1]);
        endNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(words[2]));
        pauseUs = Long.parseLong(words[3]);
    }

    String run() throws InterruptedException {
        for (int i = 0; System.nanoTime() < endNs; i++) {
            List<String> ids = enter(i % 3);
            if (!ids.isEmpty()) {
                stay(ids.size());
                leave(ids);
            }
            pause();
        }
        return entries + " " + permits + " " + highest + " " + longestUs;
    }

    /** Nobody waits for several: before 3.51 not all that are free woke who did. */
    private List<String> enter(int way) throws InterruptedException {
        if (way == 0) {
            List<String> granted = semaphore.tryAcquire(MOST, 0, LEASE_MS);
            return granted == null ? List.of() : granted;
        }
        long began = System.nanoTime();
        List<String> ids = way == 1
                ? semaphore.acquire(1, LEASE_MS)
                : semaphore.tryAcquire(1, WAIT_MS, LEASE_MS);
        longestUs = Math.max(longestUs, (System.nanoTime() - began) / 1000);
        if (ids == null || ids.isEmpty()) {
            throw new IllegalStateException("not got in " + WAIT_MS + " ms");
        }
        return ids;
    }

    private void stay(int count) throws InterruptedException {
        long now = inside.addAndGet(count);
        highest = Math.max(highest, now);
        if (now > limit) {
            throw new IllegalStateException(now + " are inside");
        }
        pause();
        inside.addAndGet(-count);
        entries++;
        permits += count;
    }

    private void leave(List<String> ids) {
        int released = semaphore.release(ids.toArray(new String[0]));
        if (released != ids.size()) {
            throw new IllegalStateException(released + " released, not " + ids.size());
        }
    }

    /** Up to twice the pause. */
    private void pause() throws InterruptedException {
        TimeUnit.MICROSECONDS.sleep(ThreadLocalRandom.current().nextLong(2 * pauseUs));
    }
}
