import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import latchd.Latchd;
import redis.clients.jedis.DefaultJedisClientConfig;

/** HelperAgent TIMEOUT_S PATIENCE_S URL...: takes locks as it is told (README.md says how). */
public class HelperAgent {
    static final Map<String, LinkedBlockingQueue<String>> UNLOCKS = new ConcurrentHashMap<>();
    static final Map<String, Latchd.Follower> FOLLOWERS = new ConcurrentHashMap<>();
    static final Map<String, Thread> THREADS = new ConcurrentHashMap<>();
    static Latchd latchd;

    static synchronized void say(Object... words) {
        System.out.println(String.join(" ", Arrays.stream(words).map(String::valueOf)
                .toArray(String[]::new)));
        System.out.flush();
    }

    static Latchd.Lock lock(String key, String name, List<String> options) {
        String[] names = name.split(",");
        Latchd.Lock lock = latchd.lock(names[0], Arrays.copyOfRange(names, 1, names.length)).onLost(() -> say(key, "lost"))
                .onUncertain(() -> say(key, "uncertain"));
        for (String option : options) {
            String[] parts = option.split("=");
            switch (parts[0]) {
                case "fair": lock.fair(); break;
                case "read": lock.read(); break;
                case "write": lock.write(); break;
                case "permits": lock.permits(Integer.parseInt(parts[1]), 3); break;
                case "priority": lock.priority(Integer.parseInt(parts[1])); break;
                case "queue": lock.queue(Integer.parseInt(parts[1])); break;
                case "owner": lock.owner(parts[1]); break;
                case "lease": lock.lease(Duration.ofMillis(Long.parseLong(parts[1]))); break;
                case "grace": lock.grace(Duration.ofMillis(Long.parseLong(parts[1]))); break;
                case "data": lock.data(parts[1]); break;
                case "heartbeat": lock.heartbeat(Duration.ofMillis(Long.parseLong(parts[1]))); break;
                case "at_least": lock.atLeast(Duration.ofMillis(Long.parseLong(parts[1]))); break;
                case "keep": lock.keep(Duration.ofMillis(Long.parseLong(parts[1]))); break;
                default: throw new IllegalArgumentException(option);
            }
        }
        return lock;
    }

    /** Who is told to give up after the grant goes on. */
    static void awaitUnlock(String key) {
        for (;;) {
            try {
                UNLOCKS.get(key).take();
                return;
            } catch (InterruptedException e) {
                // It came too late for the wait.
            }
        }
    }

    /** A hold belongs to its thread, which waits to be told to unlock it. */
    static void hold(String key, String[] words) {
        try {
            Latchd.Lock lock = lock(key, words[2], List.of(words).subList(4, words.length));
            if (words[3].equals("-")) {
                lock.lockInterruptibly();
            } else if (!lock.tryLock(Long.parseLong(words[3]), TimeUnit.MILLISECONDS)) {
                say(key, "null");
                return;
            }
            check(lock.isHeldByCurrentThread());
            try (lock) {
                say(key, "token", lock.tokens().stream().map(String::valueOf)
                        .collect(Collectors.joining(" ")));
                awaitUnlock(key);
            }
            check(!lock.isHeldByCurrentThread());
            say(key, "unlocked");
        } catch (Latchd.LatchdException e) {
            say(key, "error", e.code());
        } catch (InterruptedException e) {
            say(key, "gave-up");
        }
    }

    static void check(boolean is) {
        if (!is) {
            throw new AssertionError();
        }
    }

    static void locked(String key, String[] names) {
        try {
            boolean is = latchd.lock(names[0], Arrays.copyOfRange(names, 1, names.length)).isLocked();
            say(key, "answer", is ? 1 : 0);
        } catch (Latchd.LatchdException e) {
            say(key, "error", e.code());
        }
    }

    static void follow(String key, String name) {
        Latchd.Follower follower = latchd.follow(name,
                l -> say(key, "leader", l.token(), l.data().isEmpty() ? "-" : l.data()));
        FOLLOWERS.put(key, follower);
        follower.ended().whenComplete((nothing, error) -> {
            if (error instanceof Latchd.LatchdException) {
                say(key, "error", ((Latchd.LatchdException) error).code());
            } else {
                say(key, "gave-up");
            }
        });
    }

    static void latch(String key, String what, String name, List<String> words) {
        Latchd.Latch latch = latchd.latch(name);
        try {
            long answer;
            switch (what) {
                case "set":
                    long count = Long.parseLong(words.get(0));
                    boolean set = words.size() > 1 ? latch.trySetCount(count, words.get(1)) : latch.trySetCount(count);
                    answer = set ? 1 : 0;
                    break;
                case "count":
                    answer = words.isEmpty() ? latch.countDown() : latch.countDown(words.get(0));
                    break;
                case "await":
                    answer = latch.await(Long.parseLong(words.get(0)), TimeUnit.MILLISECONDS) ? 1 : 0;
                    break;
                default:
                    answer = latch.delete() ? 1 : 0;
            }
            say(key, "answer", answer);
        } catch (Latchd.LatchdException e) {
            say(key, "error", e.code());
        } catch (InterruptedException e) {
            say(key, "gave-up");
        }
    }

    static void crowd(String key, String name, int count, int turns) {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger overlaps = new AtomicInteger();
        Latchd.Lock lock = latchd.lock(name); // all share it
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            threads[i] = new Thread(() -> {
                for (int turn = 0; turn < turns; turn++) {
                    lock.lock();
                    try (lock) {
                        overlaps.addAndGet(inside.getAndIncrement());
                        Thread.yield();
                        inside.decrementAndGet();
                    }
                }
            });
            threads[i].start();
        }
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException e) {
            return;
        }
        say(key, "overlaps", overlaps.get());
    }

    static void obey(String[] words) throws IOException {
        String key = words[1];
        switch (words[0]) {
            case "lock":
                UNLOCKS.put(key, new LinkedBlockingQueue<>());
                THREADS.put(key, new Thread(() -> hold(key, words)));
                THREADS.get(key).start();
                break;
            case "unlock":
                UNLOCKS.get(key).add(key);
                break;
            case "locked":
                new Thread(() -> locked(key, words[2].split(","))).start();
                break;
            case "follow":
                follow(key, words[2]);
                break;
            case "leave":
                FOLLOWERS.get(key).close();
                break;
            case "give-up":
                THREADS.get(key).interrupt();
                break;
            case "latch":
                new Thread(() -> latch(key, words[2], words[3],
                        List.of(words).subList(4, words.length))).start();
                break;
            case "child":
                say(key, "pid", new ProcessBuilder("sleep", "infinity").start().pid());
                break;
            case "crowd":
                new Thread(() -> crowd(key, words[2], Integer.parseInt(words[3]),
                        Integer.parseInt(words[4]))).start();
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws IOException {
        latchd = new Latchd(List.of(args).subList(2, args.length),
                DefaultJedisClientConfig.builder().build(),
                Duration.ofSeconds(Long.parseLong(args[0])), Duration.ofSeconds(Long.parseLong(args[1])));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            obey(line.split(" "));
        }
    }
}
