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
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Redisson applications that do as they are told.
 *
 * <p>A line of standard input is {@code SEQ CLIENT/THREAD VERB ARGUMENT...}. Each CLIENT is
 * Redisson of its own, made by the verb {@code open} with the arguments of {@link Client}. Each
 * THREAD is a thread of its own, and runs its lines in order, as Redisson's owners are
 * threads. What it comes to is one line {@code SEQ ok|error BEGAN ENDED VALUE}: nanoseconds of
 * the monotonic clock, which other processes of the machine share, when the call began and
 * ended. The end of the input ends the process, releasing nothing.
 */
public final class RedissonPeer {
    private final Map<String, Client> clients = new ConcurrentHashMap<>();
    private final Map<String, ExecutorService> executors = new ConcurrentHashMap<>();
    private final Map<String, Thread> threads = new ConcurrentHashMap<>();

    private RedissonPeer() {}

    public static void main(String[] args) throws IOException {
        RedissonPeer peer = new RedissonPeer();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
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
            say(words[0] + " error " + began + " " + System.nanoTime() + " " + textOf(e));
        }
    }

    /** With its causes: old versions wrap what Redis said. */
    private static String textOf(Throwable thrown) {
        String text = thrown + "";
        for (Throwable t = thrown.getCause(); t != null; t = t.getCause()) {
            text += ", because " + t;
        }
        return text.replace('\n', ' ');
    }

    private String run(String[] words) throws InterruptedException {
        String name = words[1].substring(0, words[1].indexOf('/'));
        String verb = words[2];
        if (verb.equals("open")) {
            clients.put(name, new Client(words[3], words[4], Long.parseLong(words[5]),
                    Long.parseLong(words[6])));
            return "true";
        }
        if (verb.equals("close")) {
            clients.remove(name).nodes.forEach(RedissonClient::shutdown);
            return "true";
        }
        if (verb.equals("parked")) {
            return parked(name + "/" + words[3]);
        }
        Client client = clients.get(name);
        if (verb.equals("contend")) {
            return new Contender(client, words).run();
        }
        if (words[3].equals("permits")) {
            Permits permits = new Permits(client.data().getPermitExpirableSemaphore(words[4]));
            String[] rest = Arrays.copyOfRange(words, 5, words.length);
            return verb.equals("crowd")
                    ? new Crowd(permits, client, rest).run()
                    : permits.run(verb, rest);
        }
        if (words[3].equals("latch")) {
            return new Latches(client.data().getCountDownLatch(words[4]))
                    .run(verb, Arrays.copyOfRange(words, 5, words.length));
        }
        RLock lock = client.names.lock(words[3], words[4]);
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
                return pass(client, lock, words[5], words[6]);
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
            case "locktoken":
                lock.lock();
                return ((RFencedLock) lock).getToken() + "";
            default:
                throw new IllegalArgumentException("unknown verb " + verb);
        }
    }

    /** Does that thread sleep where Redisson waits for messages? If not, where it is. */
    private String parked(String name) {
        StackTraceElement[] stack = threads.get(name).getStackTrace();
        boolean asleep =
                Arrays.stream(stack)
                        .anyMatch(frame -> frame.getClassName().equals(Semaphore.class.getName()));
        return asleep ? "true" : Arrays.toString(stack);
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
    private static String pass(Client client, RLock lock, String list, String me) {
        lock.lock();
        long came = System.nanoTime();
        client.data()
                .getList(list, StringCodec.INSTANCE)
                .add(me + " " + came + " " + System.nanoTime());
        lock.unlock();
        return "true";
    }
}
