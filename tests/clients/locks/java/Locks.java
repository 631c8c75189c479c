import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** Locks spring|spring-pubsub|shedlock HOST PORT: takes locks as it is told (README.md says how). */
public class Locks {
    // A lock belongs to the thread that took it, so each key has one.
    private static final Map<String, ExecutorService> THREADS = new ConcurrentHashMap<>();
    private static final Map<String, Library.Held> LOCKS = new ConcurrentHashMap<>();
    private static Supplier<Library> connect;
    private static Library library;

    private static synchronized void say(String key, String what) {
        System.out.println(key + " " + what);
        System.out.flush();
    }

    private static String contend(String[] words) throws Exception {
        Contention contention = new Contention(Double.parseDouble(words[4]),
                Long.parseLong(words[5]), Long.parseLong(words[6]), words[7]);
        ExecutorService crowd = Executors.newCachedThreadPool();
        List<Future<Void>> turns = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(words[3]); i++) {
            int me = i;
            Callable<Void> turn = () -> {
                contention.takeTurns(connect.get(), me, words[2]);
                return null;
            };
            turns.add(crowd.submit(turn));
        }
        for (Future<Void> turn : turns) {
            turn.get();
        }
        crowd.shutdown();
        return contention.result();
    }

    private static String answer(String[] words) throws Exception {
        String key = words[1];
        switch (words[0]) {
            case "acquire":
                Library.Held lock = library.acquire(words[2], Long.parseLong(words[3]),
                        Long.parseLong(words[4]));
                if (lock == null) {
                    return "refused";
                }
                LOCKS.put(key, lock);
                return "acquired";
            case "extend":
                return LOCKS.get(key).extend(Long.parseLong(words[2])) ? "extended" : "refused";
            case "release":
                return LOCKS.get(key).release() ? "released" : "refused";
            case "contend":
                return contend(words);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static void obey(String[] words) {
        try {
            say(words[1], answer(words));
        } catch (Exception e) {
            say(words[1], "error " + e.toString().replace('\n', ' '));
        }
    }

    public static void main(String[] args) throws Exception {
        connect = () -> {
            var factory = Library.connect(args[1], Integer.parseInt(args[2]));
            return switch (args[0]) {
                case "spring" -> new SpringLocks(factory, RedisLockType.SPIN_LOCK);
                case "spring-pubsub" -> new SpringLocks(factory, RedisLockType.PUB_SUB_LOCK);
                default -> new ShedLocks(factory);
            };
        };
        library = connect.get();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            THREADS.computeIfAbsent(words[1], key -> Executors.newSingleThreadExecutor())
                    .submit(() -> obey(words));
        }
        System.exit(0);
    }
}
