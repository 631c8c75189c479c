import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Agent LIBRARY LEASE_MS HOST PORT[,PORT...] [MASTER]: takes locks as it is told. */
public class Agent {
    /** A lock of one KEY; a library with a wait of its own. */
    interface Lock {
        /**
         * What is said: `acquired`, with the token if there is one, or `refused`. From `acquired` on
         * the lock may be lost.
         */
        String acquire(long waitMs, Runnable acquired) throws Exception;

        void release() throws Exception;
    }

    interface Library {
        Lock lock(String name);
    }

    // A lock belongs to the thread that took it, so each key has one.
    private static final Map<String, ExecutorService> THREADS = new ConcurrentHashMap<>();
    private static final Map<String, Lock> LOCKS = new ConcurrentHashMap<>();
    private static Library library;

    private static synchronized void say(String key, String what) {
        System.out.println(key + " " + what);
        System.out.flush();
    }

    private static Library redisson(String kind, long leaseMs, String host, String[] ports,
            String master) {
        Config config = new Config();
        config.setLockWatchdogTimeout(leaseMs);
        if (master == null) {
            config.useSingleServer().setAddress("redis://" + host + ":" + ports[0]);
        } else {
            config.useSentinelServers().setMasterName(master).addSentinelAddress(
                    Arrays.stream(ports).map(p -> "redis://" + host + ":" + p)
                            .toArray(String[]::new));
        }
        RedissonClient client = Redisson.create(config);
        return name -> {
            RLock lock = switch (kind) {
                case "fair" -> client.getFairLock(name);
                case "fenced" -> client.getFencedLock(name);
                default -> client.getLock(name);
            };
            return new Lock() {
                @Override
                public String acquire(long waitMs, Runnable acquired) throws Exception {
                    if (lock instanceof RFencedLock fenced) {
                        Long token = fenced.tryLockAndGetToken(waitMs, TimeUnit.MILLISECONDS);
                        return token == null ? "refused" : "acquired " + token;
                    }
                    return lock.tryLock(waitMs, TimeUnit.MILLISECONDS) ? "acquired" : "refused";
                }

                @Override
                public void release() {
                    lock.unlock();
                }
            };
        };
    }

    /** That tells where its node is, as the transaction that made it is the token. */
    private static class Mutex extends InterProcessMutex {
        private final CuratorFramework client;

        Mutex(CuratorFramework client, String name) {
            super(client, "/locks/" + name);
            this.client = client;
        }

        /** -1: it is lost already. */
        long token() throws Exception {
            Stat stat = client.checkExists().forPath(getLockPath());
            return stat == null ? -1 : stat.getCzxid();
        }
    }

    /** As Curator's documentation says, what is held is in doubt as soon as the connection is. */
    private static Library curator(long leaseMs, String host, String[] ports) {
        String servers = Arrays.stream(ports).map(p -> host + ":" + p)
                .collect(Collectors.joining(","));
        CuratorFramework client = CuratorFrameworkFactory.newClient(servers, (int) leaseMs,
                (int) leaseMs, new ExponentialBackoffRetry(1000, 3));
        client.getConnectionStateListenable().addListener((same, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                LOCKS.keySet().forEach(key -> say(key, "lost"));
            }
        });
        client.start();
        return name -> {
            Mutex mutex = new Mutex(client, name);
            return new Lock() {
                @Override
                public String acquire(long waitMs, Runnable acquired) throws Exception {
                    if (!mutex.acquire(waitMs, TimeUnit.MILLISECONDS)) {
                        return "refused";
                    }
                    acquired.run();
                    return "acquired " + mutex.token();
                }

                @Override
                public void release() throws Exception {
                    mutex.release();
                }
            };
        };
    }

    private static String answer(String[] words) throws Exception {
        String key = words[1];
        if (words[0].equals("acquire")) {
            Lock lock = library.lock(words[2]);
            String said = lock.acquire(Long.parseLong(words[4]), () -> LOCKS.put(key, lock));
            if (said.startsWith("acquired")) {
                LOCKS.put(key, lock);
            }
            return said;
        }
        try {
            LOCKS.remove(key).release();
            return "released";
        } catch (IllegalMonitorStateException e) {
            return "refused";
        } finally {
            THREADS.remove(key).shutdown();
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
        long leaseMs = Long.parseLong(args[1]);
        String[] ports = args[3].split(",");
        library = args[0].equals("curator") ? curator(leaseMs, args[2], ports)
                : redisson(args[0], leaseMs, args[2], ports, args.length > 4 ? args[4] : null);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            THREADS.computeIfAbsent(words[1], key -> Executors.newSingleThreadExecutor())
                    .submit(() -> obey(words));
        }
        System.exit(0);
    }
}
