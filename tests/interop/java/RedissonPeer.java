import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A Redisson application that does as it is told: RedissonPeer PORT WATCHDOG_MS.
 *
 * <p>A line of standard input is {@code SEQ THREAD VERB ARGUMENT...}. Each THREAD is a thread
 * of its own, and runs its lines in order, as Redisson's owners are threads. What it comes to
 * is one line {@code SEQ ok|error BEGAN ENDED VALUE}: nanoseconds of the monotonic clock,
 * which other processes of the machine share, when the call began and ended. The end of the
 * input ends the process, releasing nothing.
 */
public final class RedissonPeer {
    private final RedissonClient redisson;
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

    private RedissonPeer(int port, long watchdogMs) {
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(4);
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        config.useSingleServer()
                .setAddress("redis://127.0.0.1:" + port)
                .setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(24)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(4);
        redisson = Redisson.create(config);
    }

    public static void main(String[] args) throws IOException {
        RedissonPeer peer = new RedissonPeer(Integer.parseInt(args[0]), Long.parseLong(args[1]));
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("0 ok 0 0 ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            peer.threads
                    .computeIfAbsent(words[1], t -> Executors.newSingleThreadExecutor())
                    .execute(() -> peer.answer(words));
        }
        Runtime.getRuntime().halt(0);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private void answer(String[] words) {
        long began = System.nanoTime();
        try {
            String value = run(words);
            say(words[0] + " ok " + began + " " + System.nanoTime() + " " + value);
        } catch (Exception e) {
            String text = (e + "").replace('\n', ' ');
            say(words[0] + " error " + began + " " + System.nanoTime() + " " + text);
        }
    }

    private String run(String[] words) throws InterruptedException {
        String verb = words[2];
        if (verb.equals("contend")) {
            return new Contender(words).run();
        }
        RLock lock = lock(words[3], words[4]);
        switch (verb) {
            case "lock":
                take(lock, Long.parseLong(words[5]));
                return "true";
            case "try":
                return lock.tryLock(
                                Long.parseLong(words[5]),
                                Long.parseLong(words[6]),
                                TimeUnit.MILLISECONDS)
                        + "";
            case "unlock":
                lock.unlock();
                return "true";
            case "force":
                return lock.forceUnlock() + "";
            case "held":
                return lock.isHeldByCurrentThread() + "";
            case "count":
                return lock.getHoldCount() + "";
            case "locked":
                return lock.isLocked() + "";
            case "token":
                return ((RFencedLock) lock).lockAndGetToken() + "";
            default:
                throw new IllegalArgumentException("unknown verb " + verb);
        }
    }

    private RLock lock(String kind, String name) {
        switch (kind) {
            case "plain":
                return redisson.getLock(name);
            case "fenced":
                return redisson.getFencedLock(name);
            case "spin":
                return redisson.getSpinLock(name);
            default:
                throw new IllegalArgumentException("unknown kind " + kind);
        }
    }

    /** 0 ms: no lease, the watchdog keeps it. */
    private static void take(RLock lock, long leaseMs) {
        if (leaseMs > 0) {
            lock.lock(leaseMs, TimeUnit.MILLISECONDS);
        } else {
            lock.lock();
        }
    }

    /**
     * Enters again and again until the value has counted far enough: {@code contend KIND NAME
     * VALUE ME TARGET PAUSE_US}. VALUE is {@code ME|count} while somebody is inside, {@code
     * free-ME|count} after; nothing about its change is atomic, so two in the lock at a time
     * meet in it sooner or later. It comes to the number of entries, the longest wait in
     * microseconds, and how often the one before was from the other side.
     */
    private final class Contender {
        private static final long LEASE_MS = 30_000;
        private static final long WAIT_MS = 60_000;
        private final String kind;
        private final String name;
        private final String value;
        private final String me;
        private final long target;
        private final long pauseUs;
        private long entries;
        private long longest;
        private long crossings;

        Contender(String[] words) {
            kind = words[3];
            name = words[4];
            value = words[5];
            me = words[6];
            target = Long.parseLong(words[7]);
            pauseUs = Long.parseLong(words[8]);
        }

        String run() throws InterruptedException {
            boolean more = true;
            for (int i = 0; more; i++) {
                RLock lock = lock(kind, name);
                int times = enter(lock, i % 4);
                more = change();
                for (int t = 0; t < times; t++) {
                    lock.unlock();
                }
                pause();
            }
            return entries + " " + longest + " " + crossings;
        }

        /** Somewhere else for a while, up to twice the pause. */
        private void pause() throws InterruptedException {
            if (pauseUs > 0) {
                TimeUnit.MICROSECONDS.sleep(ThreadLocalRandom.current().nextLong(2 * pauseUs));
            }
        }

        /** The ways to take a lock, in turn; says how often it was entered. */
        private int enter(RLock lock, int way) throws InterruptedException {
            long began = System.nanoTime();
            if (way == 0) {
                lock.lock();
            } else if (way == 1) {
                lock.lock(LEASE_MS, TimeUnit.MILLISECONDS);
            } else if (!lock.tryLock(WAIT_MS, TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("not got in " + WAIT_MS + " ms");
            }
            longest = Math.max(longest, (System.nanoTime() - began) / 1000);
            if (way == 3) {
                lock.lock();
                return 2;
            }
            return 1;
        }

        /** One count on, alone; false when the target is reached. */
        private boolean change() {
            String before = redisson.<String>getBucket(value, StringCodec.INSTANCE).get();
            long count = Long.parseLong(before.substring(before.indexOf('|') + 1));
            if (!before.startsWith("free-")) {
                throw new IllegalStateException(me + " came in and found " + before);
            }
            if (count >= target) {
                return false;
            }
            String mine = me + "|" + (count + 1);
            redisson.<String>getBucket(value, StringCodec.INSTANCE).set(mine);
            String after = redisson.<String>getBucket(value, StringCodec.INSTANCE).get();
            if (!mine.equals(after)) {
                throw new IllegalStateException(me + " left " + mine + " and found " + after);
            }
            redisson.<String>getBucket(value, StringCodec.INSTANCE).set("free-" + mine);
            entries++;
            crossings += before.startsWith("free-" + me.charAt(0)) ? 0 : 1;
            return true;
        }
    }
}
