import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A Redisson application that does as it is told: RedissonPeer PORT WATCHDOG_MS FAIR_WAIT_MS.
 *
 * <p>A line of standard input is {@code SEQ THREAD VERB ARGUMENT...}. Each THREAD is a thread
 * of its own, and runs its lines in order, as Redisson's owners are threads. What it comes to
 * is one line {@code SEQ ok|error BEGAN ENDED VALUE}: nanoseconds of the monotonic clock,
 * which other processes of the machine share, when the call began and ended. The end of the
 * input ends the process, releasing nothing.
 */
public final class RedissonPeer {
    private final RedissonClient redisson;
    private final Names names;
    private final Map<String, ExecutorService> executors = new ConcurrentHashMap<>();
    private final Map<String, Thread> threads = new ConcurrentHashMap<>();

    private RedissonPeer(int port, long watchdogMs, long fairWaitMs) {
        Config config = new Config();
        config.setThreads(4);
        config.setNettyThreads(4);
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        setFairWait(config, fairWaitMs);
        config.useSingleServer()
                .setAddress("redis://127.0.0.1:" + port)
                .setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(24)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(12);
        redisson = Redisson.create(config);
        names = new Names(redisson);
    }

    /** Versions before 3.46 have no such setting. */
    private static void setFairWait(Config config, long ms) {
        try {
            Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, ms);
        } catch (NoSuchMethodException e) {
            return;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws IOException {
        RedissonPeer peer =
                new RedissonPeer(
                        Integer.parseInt(args[0]),
                        Long.parseLong(args[1]),
                        Long.parseLong(args[2]));
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("0 ok 0 0 ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            peer.executors
                    .computeIfAbsent(words[1], peer::executor)
                    .execute(() -> peer.answer(words));
        }
        Runtime.getRuntime().halt(0);
    }

    private ExecutorService executor(String name) {
        return Executors.newSingleThreadExecutor(
                work -> {
                    Thread thread = new Thread(work);
                    threads.put(name, thread);
                    return thread;
                });
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
            return new Contender(redisson, words).run();
        }
        if (verb.equals("parked")) {
            return parked(words[3]) + "";
        }
        RLock lock = names.lock(words[3], words[4]);
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
            case "pass":
                return pass(lock, words[5], words[6]);
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

    /** Does that thread sleep where Redisson waits for messages? */
    private boolean parked(String name) {
        return Arrays.stream(threads.get(name).getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(Semaphore.class.getName()));
    }

    /** 0 ms: no lease, the watchdog keeps it. */
    private static void take(RLock lock, long leaseMs) {
        if (leaseMs > 0) {
            lock.lock(leaseMs, TimeUnit.MILLISECONDS);
        } else {
            lock.lock();
        }
    }

    /** In and out; inside it writes itself down in a list, with when it came and went. */
    private String pass(RLock lock, String list, String me) {
        lock.lock();
        long came = System.nanoTime();
        redisson.getList(list, StringCodec.INSTANCE)
                .add(me + " " + came + " " + System.nanoTime());
        lock.unlock();
        return "true";
    }
}
