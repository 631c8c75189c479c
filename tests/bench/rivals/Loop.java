import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A closed loop: threads that take and free a lock, each one of its own ("own"), or all the same.
 *
 * <p>Prints pairs in a second, and of the time to a grant (one lock: from the last freeing) the
 * median, the 99th and 99.9th percentile and the longest, in us; and how many pairs there were.
 */
public final class Loop {
    /** One lock as one thread sees it. */
    public interface Held {
        void take() throws Exception;

        void give() throws Exception;
    }

    /** What makes locks. */
    public interface Rival {
        Held open(String name) throws Exception;
    }

    private static final int WARM_MS = 2000;
    private static final AtomicBoolean running = new AtomicBoolean(true);
    private static volatile boolean counting;
    private static volatile long freed;

    private final Held held;
    private final boolean one;
    private long[] times = new long[1 << 12];
    private int count;

    private Loop(Held held, boolean one) {
        this.held = held;
        this.one = one;
    }

    private void run() {
        try {
            while (running.get()) {
                long began = System.nanoTime();
                held.take();
                long since = one ? freed : began;
                if (counting && since != 0) {
                    add((System.nanoTime() - since) / 1000);
                }
                freed = System.nanoTime();
                held.give();
            }
        } catch (Exception e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private void add(long us) {
        if (count == times.length) {
            times = Arrays.copyOf(times, 2 * count);
        }
        times[count++] = us;
    }

    static void measure(Rival rival, String[] args) throws Exception {
        boolean one = !args[1].equals("own");
        int peers = Integer.parseInt(args[2]);
        long ms = (long) (Double.parseDouble(args[3]) * 1000);
        Loop[] loops = new Loop[peers];
        for (int i = 0; i < peers; i++) {
            loops[i] = new Loop(rival.open(one ? "one" : "own" + i), one);
        }
        for (Loop loop : loops) {
            Thread thread = new Thread(loop::run);
            thread.setDaemon(true);
            thread.start();
        }
        Thread.sleep(WARM_MS);
        freed = 0;
        counting = true;
        long began = System.nanoTime();
        Thread.sleep(ms);
        counting = false;
        double seconds = (System.nanoTime() - began) / 1e9;
        long[] all = Arrays.stream(loops)
                .flatMapToLong(l -> Arrays.stream(l.times, 0, l.count))
                .sorted()
                .toArray();
        System.out.printf("%.1f %d %d %d %d %d%n", all.length / seconds, at(all, 0.5),
                at(all, 0.99), at(all, 0.999), at(all, 1), all.length);
        System.out.flush();
        Runtime.getRuntime().halt(0); // whatever is held goes with the servers
    }

    private static long at(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) ((sorted.length - 1) * share)];
    }
}
