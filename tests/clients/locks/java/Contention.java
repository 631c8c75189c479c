import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** Who had the lock last, and how long everybody waited. */
class Contention {
    private static final long LEASE_MS = 10_000;
    private static final long WAIT_MS = 60_000;
    private final long end;
    private final long holdUs;
    private final long pauseUs;
    private final Path guard;
    private final List<Long> waits = new ArrayList<>();
    private int last = -1;
    private int handovers;
    private int overlaps;

    Contention(double seconds, long holdUs, long pauseUs, String guard) {
        this.end = System.nanoTime() + (long) (seconds * 1e9);
        this.holdUs = holdUs;
        this.pauseUs = pauseUs;
        this.guard = Path.of(guard);
    }

    private boolean isOver() {
        return System.nanoTime() >= end;
    }

    private static void sleepUs(double us) throws InterruptedException {
        Thread.sleep((long) us / 1000, (int) (us * 1000) % 1_000_000);
    }

    private synchronized boolean enter(int me, long began) throws Exception {
        long waited = (System.nanoTime() - began) / 1000;
        boolean inTime = !isOver();
        waits.add(inTime ? waited : -waited);
        try {
            Files.createFile(guard);
        } catch (FileAlreadyExistsException e) {
            overlaps++;
        }
        if (inTime && last >= 0 && last != me) {
            handovers++;
        }
        last = me;
        return inTime;
    }

    private synchronized void leave() throws Exception {
        if (!Files.deleteIfExists(guard)) {
            overlaps++;
        }
    }

    void takeTurns(Library library, int me, String name) throws Exception {
        while (!isOver()) {
            long began = System.nanoTime();
            Library.Held lock = library.acquire(name, LEASE_MS, WAIT_MS);
            if (lock == null) {
                throw new IllegalStateException("not acquired in " + WAIT_MS + " ms");
            }
            if (enter(me, began)) {
                sleepUs(holdUs);
            }
            leave();
            lock.release();
            sleepUs(ThreadLocalRandom.current().nextDouble(2 * pauseUs + 1));
        }
    }

    synchronized String result() {
        StringBuilder text = new StringBuilder("contended " + handovers + " " + overlaps);
        waits.forEach(wait -> text.append(' ').append(wait));
        return text.toString();
    }
}
