package latchd;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Condition;
import java.util.function.Consumer;
import java.util.function.Supplier;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.DefaultRedisCredentials;
import redis.clients.jedis.DefaultRedisCredentialsProvider;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.util.JedisURIHelper;

/**
 * Locks of latchd, over Jedis; one object serves a whole process.
 *
 * <pre>
 * Latchd latchd = new Latchd("redis://localhost:5625");
 * Latchd.Lock lock = latchd.lock("job");
 * if (lock.tryLock(10, TimeUnit.SECONDS)) {
 *     try (lock) {
 *         work(lock.token()); // until lock.isLost()
 *     }
 * }
 * </pre>
 *
 * <p>Each wait has a connection of its own; all holds of a Latchd are renewed over one, and one more
 * hears at once what latchd learns of those that last. Every request has an ID and is repeated,
 * through the next address if need be, until it is answered. How long a hold may be relied on is
 * counted from before its last renewal was sent, on a clock that runs during suspend (on Linux). A
 * hold is renewed until it is released, lost, or its process ends, and then lasts for the rest of its
 * lease, or for its grace. The garbage collector releases none. All threads are daemons.
 */
public final class Latchd implements AutoCloseable {
    private static final long LONGEST_ASK_MS = 10_000; // a wait is made of LOCKs that are this long
    private static final int MOST_IDLE = 8; // connections that are kept for the next waits
    private static final long FIRST_PAUSE_MS = 50;
    private static final long LAST_PAUSE_MS = 1000;
    private static final long LEAST_LEASE_MS = 100; // what latchd takes
    private static final long HEARD_AFTER_MS = 50; // a shorter hold is not listened for
    private static final long FOREVER = Long.MAX_VALUE;
    /** A hold with a heartbeat is lost after two thirds of it without a renewal. */
    private static final long HEARTBEAT_PARTS = 2;
    private static final long HEARTBEAT_OF = 3;
    private static final System.Logger LOG = System.getLogger("latchd");
    private static final Path UPTIME = Path.of("/proc/uptime");
    private static final boolean SUSPEND_COUNTS = Files.isReadable(UPTIME);

    private final List<HostAndPort> places = new ArrayList<>();
    private final List<JedisClientConfig> configs = new ArrayList<>();
    private final long timeoutMs;
    private final long patienceMs;
    private final ExecutorService workers = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "latchd");
        thread.setDaemon(true);
        return thread;
    });

    // What follows is guarded by this object's monitor, and so is what changes of a Hold.
    private final Map<String, Hold> holds = new HashMap<>();
    private final Deque<Link> idle = new ArrayDeque<>();
    private int at; // the address that answered last
    private boolean keeping;
    private boolean renewing;
    private long pauseMs;
    private Link renewals; // of the one renewal that is under way
    private Listener listener;
    private boolean unheard; // there are holds, or there is another latchd, to listen for
    private boolean following;
    private long hearAt;
    private final Map<String, String> said = new HashMap<>(); // by name and token

    /** For latchds that share a Redis; the first that answers is used. */
    public Latchd(String... addresses) {
        this(List.of(addresses), DefaultJedisClientConfig.builder().build(), Duration.ofSeconds(5),
                Duration.ofSeconds(30));
    }

    /**
     * The same.
     *
     * @param base what Jedis is to be told beside addresses, users and passwords
     * @param timeout without an answer for so long, a connection is given up
     * @param patience after so long without latchd, or with its Redis out of reach, a wait fails
     */
    public Latchd(List<String> addresses, JedisClientConfig base, Duration timeout, Duration patience) {
        if (addresses.isEmpty()) {
            throw new IllegalArgumentException("latchd's address is missing");
        }
        timeoutMs = timeout.toMillis();
        patienceMs = patience.toMillis();
        for (String address : addresses) {
            URI uri = URI.create(address);
            String user = JedisURIHelper.getUser(uri);
            String password = JedisURIHelper.getPassword(uri);
            Map<String, Object> changes = new HashMap<>();
            changes.put("getConnectionTimeoutMillis", (int) timeoutMs);
            changes.put("getSocketTimeoutMillis", (int) timeoutMs);
            if (JedisURIHelper.isRedisSSLScheme(uri)) {
                changes.put("isSsl", true);
            }
            if (password != null) {
                changes.put("getUser", user);
                changes.put("getPassword", password);
                changes.put("getCredentialsProvider",
                        new DefaultRedisCredentialsProvider(new DefaultRedisCredentials(user, password)));
            }
            places.add(JedisURIHelper.getHostAndPort(uri));
            configs.add(change(base, changes));
        }
    }

    /** What {@code base} answers, but for these. Each version of Jedis has other questions. */
    private static JedisClientConfig change(JedisClientConfig base, Map<String, Object> changes) {
        return (JedisClientConfig) Proxy.newProxyInstance(Latchd.class.getClassLoader(),
                new Class<?>[] {JedisClientConfig.class}, (proxy, method, arguments) ->
                        changes.containsKey(method.getName()) ? changes.get(method.getName())
                                : method.invoke(base, arguments));
    }

    /** Not held yet. Several names are taken all or none; a loss of one is a loss of all. */
    public Lock lock(String name, String... more) {
        List<String> names = new ArrayList<>(List.of(name));
        names.addAll(List.of(more));
        return new Lock(names);
    }

    /** Is set to a number, counted down, and opens at 0. */
    public Latch latch(String name) {
        return new Latch(name);
    }

    /** Closes all connections: what is held then ends with its lease. */
    @Override
    public synchronized void close() {
        workers.shutdownNow();
        holds.clear();
        idle.forEach(Link::close);
        idle.clear();
        if (renewals != null) {
            renewals.close();
        }
        if (listener != null) {
            listener.close();
        }
        notifyAll();
    }

    /** What latchd answered, or why it did not. */
    public static class LatchdException extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final String code;

        LatchdException(String code, String message) {
            super(message);
            this.code = code;
        }

        /** The first word of latchd's answer. */
        public String code() {
            return code;
        }

        /** Whether the request may succeed if it is sent again. */
        boolean canPass() {
            return this instanceof Unreachable || this instanceof Backend || code.equals("GOAWAY");
        }
    }

    /** The lock was lost before it was released: somebody else may have had it since. */
    public static final class LockLost extends LatchdException {
        private static final long serialVersionUID = 1;

        LockLost(String message) {
            super("NOTHELD", message);
        }
    }

    /** No address of latchd answers. */
    public static final class Unreachable extends LatchdException {
        private static final long serialVersionUID = 1;

        Unreachable(String message) {
            super("UNREACHABLE", message);
        }
    }

    /** latchd's Redis cannot be reached, or refuses to grant: BACKEND or NOREPLICAS. */
    public static final class Backend extends LatchdException {
        private static final long serialVersionUID = 1;

        Backend(String code, String message) {
            super(code, message);
        }
    }

    /** Owners would wait for each other. */
    public static final class Deadlock extends LatchdException {
        private static final long serialVersionUID = 1;

        Deadlock(String message) {
            super("DEADLOCK", message);
        }
    }

    /** A limit of latchd's configuration is reached. */
    public static final class Limit extends LatchdException {
        private static final long serialVersionUID = 1;

        Limit(String message) {
            super("LIMIT", message);
        }
    }

    /** The user may not do that, or did not log in. */
    public static final class NoPermission extends LatchdException {
        private static final long serialVersionUID = 1;

        NoPermission(String code, String message) {
            super(code, message);
        }
    }

    /** The name belongs to other data, or to a lock of the other class. */
    public static final class WrongType extends LatchdException {
        private static final long serialVersionUID = 1;

        WrongType(String message) {
            super("WRONGTYPE", message);
        }
    }

    /** There is no such latch: it was never set, or was deleted, evicted or lost. */
    public static final class LatchGone extends LatchdException {
        private static final long serialVersionUID = 1;

        LatchGone(String message) {
            super("GONE", message);
        }
    }

    private static LatchdException toTyped(JedisException error) {
        String message = String.valueOf(error.getMessage());
        if (!(error instanceof JedisDataException)) {
            return new Unreachable(message);
        }
        String code = message.split(" ", 2)[0];
        switch (code) {
            case "NOTHELD":
                return new LockLost(message);
            case "BACKEND":
            case "NOREPLICAS":
                return new Backend(code, message);
            case "DEADLOCK":
                return new Deadlock(message);
            case "LIMIT":
                return new Limit(message);
            case "NOPERM":
            case "NOAUTH":
            case "WRONGPASS":
            case "DENIED":
                return new NoPermission(code, message);
            case "WRONGTYPE":
                return new WrongType(message);
            default:
                if (message.startsWith("ERR gone") || message.startsWith("ERR no such latch")) {
                    return new LatchGone(message);
                }
                if (message.startsWith("ERR unknown command")) {
                    return new LatchdException("NOTLATCHD", "this is a Redis, not a latchd: " + message);
                }
                return new LatchdException(code, message);
        }
    }

    /** Milliseconds of a clock for leases: it runs during suspend, in steps of 10 ms. */
    private static long now() {
        if (SUSPEND_COUNTS) {
            try {
                String text = Files.readString(UPTIME);
                return (long) (Double.parseDouble(text.substring(0, text.indexOf(' '))) * 1000);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
        return steadyMs();
    }

    private static long steadyMs() {
        return System.nanoTime() / 1_000_000;
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // by close()
        }
    }

    /** A connection; of one thread at a time. */
    private static final class Link {
        final Connection connection;
        final int at;

        Link(Connection connection, int at) {
            this.connection = connection;
            this.at = at;
        }

        void send(List<String> words) {
            ProtocolCommand command = () -> words.get(0).getBytes(StandardCharsets.UTF_8);
            connection.sendCommand(command, words.subList(1, words.size()).toArray(new String[0]));
        }

        /** The answer, null for null. */
        Object read() {
            Object answer = connection.getOne();
            if (answer instanceof JedisDataException) {
                throw (JedisDataException) answer;
            }
            return answer;
        }

        void close() {
            try {
                connection.disconnect();
            } catch (JedisException e) {
                // It was broken already.
            }
        }
    }

    private enum State { WAITING, HELD, LOST, RELEASED }

    /** One request for one lock, or several, and what it was granted. */
    private final class Hold {
        final Lock lock;
        String request = UUID.randomUUID().toString();
        State state = State.WAITING;
        boolean uncertain;
        boolean noticed; // latchd said something since the last renewal was sent
        int entries = 1;
        List<Long> tokens = List.of(); // as the names
        long since;
        long until;
        long due;
        long end;
        long leaseMs;
        CompletableFuture<Object> asking = CompletableFuture.completedFuture(null);
        CompletableFuture<Void> begun;

        Hold(Lock lock) {
            this.lock = lock;
            this.leaseMs = lock.leaseMs;
        }

        /** One for each name. */
        List<List<String>> commands(String command, String... more) {
            List<List<String>> all = new ArrayList<>();
            for (String name : lock.names) {
                List<String> words = new ArrayList<>(List.of(command, name));
                if (lock.kind != null) {
                    words.add(lock.kind);
                }
                words.addAll(List.of("ID", request));
                words.addAll(Arrays.asList(more));
                all.add(words);
            }
            return all;
        }

        /** A hold with a lease is only confirmed, for what is left of it. */
        List<List<String>> renewal(long sent) {
            noticed = false;
            if (leaseMs == 0) {
                return commands("RENEW");
            }
            if (state == State.WAITING) {
                end = sent + leaseMs;
            }
            return commands("RENEW", "LEASE", Long.toString(Math.max(LEAST_LEASE_MS, end - sent)));
        }

        void renewed(long sent, long leftMs) {
            until = leaseMs == 0 ? sent + leftMs : Math.min(sent + leftMs, end);
            if (lock.heartbeatMs != 0 && leaseMs == 0) { // over before latchd gives it on
                until = Math.min(until, sent + lock.heartbeatMs * HEARTBEAT_PARTS / HEARTBEAT_OF);
            }
            due = noticed ? Long.MIN_VALUE : sent + (until - sent) / 3;
            uncertain = false;
        }

        void doubt() {
            if (state == State.HELD && !uncertain) {
                uncertain = true;
                tell(() -> LOG.log(System.Logger.Level.WARNING,
                        lock.name() + " is uncertain: no renewal is confirmed"));
                tell(lock.onUncertain);
            }
        }
    }

    // Connections

    /** Through the first address that answers, beginning with the last one that did. */
    private Link connect() {
        LatchdException trouble = null;
        for (int i = 0; i < places.size(); i++) {
            int place = current();
            Link link = null;
            try {
                link = new Link(new Connection(places.get(place), configs.get(place)), place);
                link.connection.ping(); // the daemon itself answers, and not only its host
                return link;
            } catch (JedisException e) {
                trouble = toTyped(e);
                if (link != null) {
                    link.close();
                }
                if (!trouble.canPass()) {
                    throw trouble;
                }
                leave(place);
            }
        }
        throw new Unreachable(trouble.getMessage());
    }

    private synchronized int current() {
        return at;
    }

    /** The next connection begins with another address, if there is one. */
    private synchronized void leave(int place) {
        if (at == place) {
            at = (place + 1) % places.size();
            unheard = true;
        }
    }

    private Link takeLink() {
        synchronized (this) {
            if (!idle.isEmpty()) {
                return idle.pop();
            }
        }
        return connect();
    }

    private synchronized void giveBack(Link link) {
        if (idle.size() < MOST_IDLE && !workers.isShutdown()) {
            idle.push(link);
        } else {
            link.close();
        }
    }

    /** One command over a connection of its own. */
    private Object ask(List<String> words, long withinMs) {
        Link link = takeLink();
        try {
            link.connection.setSoTimeout((int) withinMs);
            link.send(words);
            Object answer = link.read();
            giveBack(link);
            return answer;
        } catch (JedisDataException e) {
            giveBack(link);
            throw toTyped(e);
        } catch (JedisException e) {
            link.close();
            synchronized (this) { // others that lay idle broke with it
                idle.forEach(Link::close);
                idle.clear();
            }
            leave(link.at);
            LatchdException trouble = toTyped(e);
            if (e.getCause() instanceof SocketTimeoutException) {
                trouble.initCause(e.getCause());
            }
            throw trouble;
        }
    }

    // Taking

    private <T> T await(CompletableFuture<T> future, boolean interruptibly) throws InterruptedException {
        try {
            return interruptibly ? future.get() : future.join();
        } catch (ExecutionException | CompletionException e) {
            throw e.getCause() instanceof LatchdException ? (LatchdException) e.getCause()
                    : new IllegalStateException(e.getCause());
        }
    }

    private <T> CompletableFuture<T> run(Supplier<T> work) {
        return CompletableFuture.supplyAsync(work, workers);
    }

    /** False: the wait is over, and somebody else has the lock. */
    private boolean acquire(Hold hold, long waitMs, boolean interruptibly) throws InterruptedException {
        boolean done = false;
        try {
            done = tryToAcquire(hold, waitMs, interruptibly);
            return done;
        } finally {
            if (!done) {
                workers.execute(() -> abandon(hold));
            }
        }
    }

    private boolean tryToAcquire(Hold hold, long waitMs, boolean interruptibly)
            throws InterruptedException {
        long began = steadyMs();
        long reached = began;
        long pause = FIRST_PAUSE_MS;
        for (int tries = 1;; tries++) {
            LatchdException trouble;
            boolean over;
            boolean isLong = waitMs == FOREVER || waitMs - (steadyMs() - began) > LONGEST_ASK_MS;
            try {
                Object tokens = await(askForLock(hold, waitMs, began), interruptibly);
                if (tokens != null) {
                    await(begin(hold, tokens), interruptibly);
                    return true;
                }
                reached = steadyMs();
                pause = FIRST_PAUSE_MS;
                if (waitMs != FOREVER && reached - began >= waitMs) {
                    return false;
                }
                continue;
            } catch (LatchdException e) {
                trouble = e;
                over = waitMs != FOREVER && steadyMs() - began >= waitMs;
            }
            if (trouble instanceof LockLost && !over) { // freed by force, or lost on its way
                if (hold.lock.names.size() > 1) { // of several the others are there
                    List<List<String>> unlock = hold.commands("UNLOCK");
                    workers.execute(() -> insistAll(hold, unlock));
                }
                hold.request = UUID.randomUUID().toString();
                continue;
            }
            if (isLong && hold.lock.options.contains("OWNER")
                    && trouble.getCause() instanceof SocketTimeoutException) {
                // Its LOCK may take longer than the answer is waited for: a new connection shows whether latchd is there.
                reached = steadyMs();
                tries = 0;
                continue;
            }
            // A connection that lay idle may have broken unnoticed: one attempt does not count.
            if (!trouble.canPass() || steadyMs() - reached > patienceMs
                    || over && (trouble instanceof Backend || tries > places.size())) {
                throw trouble;
            }
            long rest = pause;
            await(run(() -> {
                sleep(rest);
                return null;
            }), interruptibly);
            pause = Math.min(2 * pause, LAST_PAUSE_MS);
        }
    }

    private CompletableFuture<Object> askForLock(Hold hold, long waitMs, long began) {
        long left = waitMs == FOREVER ? FOREVER : Math.max(0, waitMs - (steadyMs() - began));
        long ask = Math.min(left, LONGEST_ASK_MS);
        // latchd looks for a deadlock where it knows how long an owner would wait in all.
        long wait = hold.lock.options.contains("OWNER") ? left : ask;
        List<String> words = new ArrayList<>(List.of("LOCK"));
        if (hold.lock.names.size() > 1) {
            words = new ArrayList<>(List.of("MLOCK", Integer.toString(hold.lock.names.size())));
        }
        words.addAll(hold.lock.names);
        words.addAll(hold.lock.words);
        if (wait != FOREVER) {
            words.addAll(List.of("WAIT", Long.toString(wait)));
        }
        if (wait == 0 && !hold.lock.options.contains("KEEP")) {
            words.addAll(List.of("KEEP", "0"));
        }
        words.addAll(List.of("ID", hold.request));
        List<String> command = words;
        CompletableFuture<Object> asking = run(() -> ask(command, ask + timeoutMs));
        synchronized (this) {
            hold.asking = asking;
        }
        return asking;
    }

    /** Attaches the hold to the connection that renews, and learns how long its lease is. */
    private synchronized CompletableFuture<Void> begin(Hold hold, Object tokens) {
        hold.tokens = new ArrayList<>();
        for (Object token : tokens instanceof List ? (List<?>) tokens : List.of(tokens)) {
            hold.tokens.add((Long) token);
        }
        hold.since = now();
        unheard = true;
        hold.until = FOREVER;
        hold.due = Long.MIN_VALUE;
        hold.begun = new CompletableFuture<>();
        holds.put(hold.request, hold);
        if (!keeping) {
            keeping = true;
            workers.execute(this::keep);
        }
        notifyAll();
        return hold.begun;
    }

    /** Ends the wait; and the hold, if it was granted in the same moment. */
    private void abandon(Hold hold) {
        CompletableFuture<Object> asking;
        synchronized (this) {
            holds.remove(hold.request);
            hold.state = State.RELEASED;
            asking = hold.asking;
        }
        List<String> cancel = List.of("CANCEL", hold.lock.names.get(0), "ID", hold.request);
        do { // it may come before the LOCK, which is sent over another connection
            insist(hold, cancel);
            try {
                asking.get(FIRST_PAUSE_MS, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                return; // by close()
            } catch (ExecutionException | TimeoutException e) {
                // The loop looks whether it is answered.
            }
        } while (!asking.isDone());
        insistAll(hold, hold.commands("UNLOCK"));
    }

    // Keeping

    /** Renews what is due, and says what is lost, as long as anything is held. */
    private void keep() {
        synchronized (this) {
            while (!holds.isEmpty() || renewing) {
                takeNotice();
                long now = now();
                long next = FOREVER;
                List<Hold> due = new ArrayList<>();
                for (Hold hold : List.copyOf(holds.values())) {
                    if (hold.until <= now) {
                        lose(hold);
                    } else if (hold.due <= now) {
                        due.add(hold);
                        next = Math.min(next, hold.until);
                    } else {
                        next = Math.min(next, Math.min(hold.due, hold.until));
                    }
                }
                if (!due.isEmpty() && !renewing) {
                    renewing = true;
                    long pause = pauseMs;
                    workers.execute(() -> renewAfter(pause, due));
                }
                next = Math.min(next, listen(now));
                try {
                    wait(next == FOREVER ? LAST_PAUSE_MS : Math.max(1, next - now));
                } catch (InterruptedException e) {
                    break; // by close()
                }
            }
            keeping = false;
        }
    }

    // Notices

    /** When to call it again. What nobody listened for shows at the next renewal. */
    private long listen(long now) {
        if (!unheard || following) {
            return FOREVER;
        }
        if (hearAt <= now) {
            hearAt = now + HEARD_AFTER_MS;
            unheard = false;
            Set<String> channels = new HashSet<>();
            for (Hold hold : holds.values()) {
                if (hold.since + HEARD_AFTER_MS <= now) {
                    for (String name : hold.lock.names) {
                        channels.addAll(List.of("lost:" + name, "uncertain:" + name));
                    }
                } else {
                    unheard = true;
                }
            }
            following = true;
            workers.execute(() -> follow(channels));
        }
        return hearAt;
    }

    /** Listens where holds are renewed to these channels, and to no others. */
    private void follow(Set<String> channels) {
        try {
            int place = current();
            Listener now = listener;
            if (now != null && (now.at != place || now.broken)) {
                now.close();
                now = null;
            }
            if (now == null && !channels.isEmpty()) {
                now = new Listener(place, channels);
                workers.execute(now);
            } else if (now != null && now.isSubscribed()) {
                now.follow(channels);
            } else if (now != null && !now.refused) {
                hearAgain(HEARD_AFTER_MS); // two threads must not connect it
            }
            synchronized (this) {
                listener = now;
            }
        } catch (JedisException e) {
            hearAgain(LAST_PAUSE_MS);
        } finally {
            synchronized (this) {
                following = false;
                notifyAll();
            }
        }
    }

    private synchronized void hearAgain(long within) {
        unheard = true;
        hearAt = now() + within;
        notifyAll();
    }

    /** Hears what one latchd says of some names, over a connection of its own. */
    private final class Listener extends JedisPubSub implements Runnable {
        final int at;
        private Set<String> heard;
        private volatile Connection connection;
        private volatile boolean closed;
        volatile boolean broken;
        volatile boolean refused; // a user who may not listen to one of them hears nothing

        Listener(int at, Set<String> channels) {
            this.at = at;
            heard = channels;
        }

        @Override
        public void run() {
            try {
                connection = new Connection(places.get(at), configs.get(at));
                if (!closed) {
                    proceed(connection, heard.toArray(new String[0]));
                }
            } catch (JedisDataException e) {
                refused = true;
            } catch (JedisException e) {
                broken = true;
                hearAgain(LAST_PAUSE_MS);
            } finally {
                close();
            }
        }

        void follow(Set<String> channels) {
            Set<String> more = new HashSet<>(channels);
            more.removeAll(heard);
            Set<String> less = new HashSet<>(heard);
            less.removeAll(channels);
            if (!more.isEmpty()) {
                subscribe(more.toArray(new String[0]));
            }
            if (!channels.isEmpty() && !less.isEmpty()) {
                unsubscribe(less.toArray(new String[0]));
            }
            heard = channels.isEmpty() ? heard : channels;
        }

        @Override
        public void onMessage(String channel, String message) {
            note(channel, message.substring(message.lastIndexOf(' ') + 1));
        }

        @Override
        public void onSubscribe(String channel, int subscribed) {
            note(channel, "");
        }

        /** No token: what is said from now on is heard, and what was said before it was not. */
        private void note(String channel, String token) {
            String[] parts = channel.split(":", 2);
            synchronized (Latchd.this) {
                said.put(token + " " + parts[1], parts[0]);
                Latchd.this.notifyAll();
            }
        }

        void close() {
            closed = true;
            Connection open = connection;
            if (open != null) {
                open.disconnect();
            }
        }
    }

    /** The renewal tells whether it is so: a latchd that the hold has left knows no better. */
    private void takeNotice() {
        for (Hold hold : said.isEmpty() ? List.<Hold>of() : holds.values()) {
            for (int i = 0; i < hold.tokens.size(); i++) {
                String what = said.get(hold.tokens.get(i) + " " + hold.lock.names.get(i));
                if (what != null || said.containsKey(" " + hold.lock.names.get(i))) {
                    hold.noticed = true;
                    hold.due = Long.MIN_VALUE;
                }
                if ("uncertain".equals(what)) {
                    hold.doubt();
                }
            }
        }
        said.clear();
    }

    // Keeping

    private void lose(Hold hold) {
        holds.remove(hold.request);
        if (hold.state == State.HELD) { // so it is told once, and never after the release
            hold.state = State.LOST;
            hold.until = Long.MIN_VALUE;
            tell(() -> LOG.log(System.Logger.Level.WARNING, hold.lock.name() + " is lost"));
            tell(hold.lock.onLost);
        }
    }

    /** Whatever it does, renewals do not wait for it. */
    private void tell(Runnable call) {
        if (call != null) {
            workers.execute(call);
        }
    }

    private void renewAfter(long pause, List<Hold> due) {
        boolean good = false;
        try {
            sleep(pause);
            good = renew(due);
        } finally {
            synchronized (this) { // after a failure the next attempt is made soon
                pauseMs = good ? 0 : Math.min(Math.max(FIRST_PAUSE_MS, 2 * pause), LAST_PAUSE_MS);
                renewing = false;
                notifyAll();
            }
        }
    }

    /** All of these in one go. Those that were released meanwhile are left out of it. */
    private boolean renew(List<Hold> due) {
        for (int tries = 1;; tries++) {
            boolean fresh = renewals == null;
            try {
                if (fresh) {
                    Link link = connect();
                    synchronized (this) {
                        renewals = link;
                    }
                }
                return renewOver(renewals, due);
            } catch (JedisException | LatchdException e) {
                LatchdException trouble = e instanceof JedisException ? toTyped((JedisException) e)
                        : (LatchdException) e;
                boolean silent = e.getCause() instanceof SocketTimeoutException;
                forgetRenewals(silent);
                // A connection that had broken unnoticed says nothing yet.
                if (fresh || silent || tries > 1) {
                    synchronized (this) {
                        due.forEach(hold -> settle(hold, 0, 0, trouble));
                    }
                    return false;
                }
            }
        }
    }

    /** Its holds were attached to the connection that broke: all are renewed at once. */
    private synchronized void forgetRenewals(boolean silent) {
        if (renewals != null) {
            if (silent) { // connecting again would succeed, so another address comes first
                leave(renewals.at);
            }
            renewals.close();
            renewals = null;
        }
        holds.values().forEach(hold -> hold.due = Long.MIN_VALUE);
    }

    private boolean renewOver(Link link, List<Hold> due) {
        long sent;
        long within = timeoutMs;
        List<List<List<String>>> commands = new ArrayList<>();
        synchronized (this) {
            due.removeIf(hold -> holds.get(hold.request) != hold);
            sent = now();
            for (Hold hold : due) {
                commands.add(hold.renewal(sent));
                if (hold.state == State.HELD) {
                    within = Math.min(within, Math.max(1000, (hold.until - sent) / 3));
                }
            }
        }
        link.connection.setSoTimeout((int) within);
        commands.forEach(all -> all.forEach(link::send));
        boolean good = true;
        for (Hold hold : List.copyOf(due)) {
            long left = FOREVER;
            LatchdException trouble = null; // a loss rather than others
            for (int i = 0; i < hold.lock.names.size(); i++) {
                try {
                    left = Math.min(left, (Long) link.read());
                } catch (JedisDataException e) {
                    trouble = trouble instanceof LockLost ? trouble : toTyped(e);
                }
            }
            due.remove(hold); // what is left in the list has no answer if the connection breaks
            good &= trouble == null || trouble instanceof LockLost;
            synchronized (this) {
                settle(hold, sent, left, trouble);
            }
        }
        return good;
    }

    /** Notes what became of one renewal. */
    private void settle(Hold hold, long sent, long left, LatchdException trouble) {
        if (holds.get(hold.request) != hold) {
            return; // released, or given up, while the renewal was under way
        }
        if (trouble == null) {
            hold.renewed(sent, left);
        }
        if (hold.state == State.WAITING) {
            if (trouble == null) {
                hold.state = State.HELD;
                hold.begun.complete(null);
            } else {
                holds.remove(hold.request);
                hold.begun.completeExceptionally(trouble);
            }
        } else if (trouble instanceof LockLost) {
            lose(hold);
        } else if (trouble != null) {
            hold.doubt();
        }
    }

    // Giving back

    private void release(Hold hold) {
        boolean lost;
        synchronized (this) {
            if (hold.state == State.HELD && hold.until <= now()) {
                lose(hold);
            }
            lost = hold.state == State.LOST;
            hold.state = State.RELEASED; // from now on no renewal counts, and no loss is told
            holds.remove(hold.request);
        }
        CompletableFuture<LatchdException> unlock = run(
                () -> insistAll(hold, hold.commands("UNLOCK")));
        try {
            lost |= unlock.get(timeoutMs, TimeUnit.MILLISECONDS) instanceof LockLost;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // it goes on in the background
        } catch (TimeoutException e) {
            // It goes on in the background: the work is done.
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        }
        if (lost) {
            throw new LockLost(hold.lock.name() + " was lost before it was released");
        }
    }

    /** Sends all; of errors, a loss is returned rather than others. */
    private LatchdException insistAll(Hold hold, List<List<String>> commands) {
        LatchdException trouble = null;
        for (List<String> words : commands) {
            LatchdException answer = insist(hold, words);
            trouble = trouble instanceof LockLost || answer == null ? trouble : answer;
        }
        return trouble;
    }

    /** Sends a command, through restarts, for as long as the hold can be there. */
    private LatchdException insist(Hold hold, List<String> words) {
        long end = steadyMs() + Math.max(patienceMs, hold.leaseMs);
        for (long pause = FIRST_PAUSE_MS;; pause = Math.min(2 * pause, LAST_PAUSE_MS)) {
            try {
                ask(words, timeoutMs);
                return null;
            } catch (LatchdException e) {
                if (!(e instanceof Unreachable) || steadyMs() > end || workers.isShutdown()) {
                    return e;
                }
                sleep(pause);
            }
        }
    }

    // Following

    /** Who holds a name alone. Nobody: 0 and empty. */
    public static final class Leader {
        private final long token;
        private final String owner;
        private final String data;

        Leader(List<?> answer) {
            token = (Long) answer.get(0);
            owner = new String((byte[]) answer.get(1), StandardCharsets.UTF_8);
            data = new String((byte[]) answer.get(2), StandardCharsets.UTF_8);
        }

        /** The fencing token. */
        public long token() {
            return token;
        }

        /** As latchd names it. */
        public String owner() {
            return owner;
        }

        /** Of the lock, see {@link Lock#data}. */
        public String data() {
            return data;
        }

        boolean isSameAs(Leader other) {
            return other != null && token == other.token && owner.equals(other.owner);
        }
    }

    /**
     * Tells who leads, now, and each time that it changes, in a thread of its own, until it is closed. A
     * leader who is followed by another one at once may be skipped.
     */
    public Follower follow(String name, Consumer<Leader> tell) {
        Follower follower = new Follower(name, tell);
        workers.execute(follower::run);
        return follower;
    }

    /** Of {@link Latchd#follow}. */
    public final class Follower implements AutoCloseable {
        private final String name;
        private final Consumer<Leader> tell;
        private final CompletableFuture<Void> ended = new CompletableFuture<>();
        private Leader last; // of its thread
        private volatile Link link;
        private volatile boolean closed;

        private Follower(String name, Consumer<Leader> tell) {
            this.name = name;
            this.tell = tell;
        }

        /** Completes when it is closed, or with what latchd refused. */
        public CompletableFuture<Void> ended() {
            return ended;
        }

        @Override
        public void close() {
            closed = true;
            Link open = link;
            if (open != null) {
                open.close();
            }
        }

        private void run() {
            long pause = FIRST_PAUSE_MS;
            try {
                while (!closed && !workers.isShutdown()) {
                    try {
                        Leader next = ask();
                        pause = FIRST_PAUSE_MS;
                        if (!next.isSameAs(last)) {
                            last = next;
                            tell.accept(next);
                        }
                    } catch (LatchdException e) {
                        if (!closed && !e.canPass()) {
                            throw e;
                        }
                        sleep(closed ? 0 : pause);
                        pause = Math.min(2 * pause, LAST_PAUSE_MS);
                    }
                }
                ended.complete(null);
            } catch (RuntimeException e) {
                ended.completeExceptionally(e);
            } finally {
                close();
            }
        }

        /** The next leader, or the last one again. */
        private Leader ask() {
            Link asked = link != null ? link : takeLink();
            long within = timeoutMs;
            List<String> words = new ArrayList<>(List.of("LEADER", name));
            if (last != null) {
                words.addAll(List.of("AFTER", Long.toString(last.token), "WAIT", Long.toString(LONGEST_ASK_MS)));
                within += LONGEST_ASK_MS;
            }
            link = asked;
            try {
                if (closed) {
                    asked.close();
                }
                asked.connection.setSoTimeout((int) within);
                asked.send(words);
                return new Leader((List<?>) asked.read());
            } catch (JedisDataException e) {
                throw toTyped(e);
            } catch (JedisException e) {
                asked.close();
                link = null;
                if (!closed) {
                    leave(asked.at);
                }
                throw toTyped(e);
            }
        }
    }

    /** Asks until latchd has answered, or the wait is over; LATCH AWAIT until the answer is not null. */
    private Object query(List<String> words, long waitMs) throws InterruptedException {
        boolean awaits = words.get(0).equals("LATCH") && words.get(1).equals("AWAIT");
        long began = steadyMs();
        long reached = began;
        long pause = FIRST_PAUSE_MS;
        for (int tries = 1;; tries++) {
            long left = !awaits ? 0 : waitMs == FOREVER ? FOREVER : Math.max(0, waitMs - (steadyMs() - began));
            long ask = Math.min(left, LONGEST_ASK_MS);
            List<String> command = new ArrayList<>(words);
            if (awaits) {
                command.addAll(List.of("WAIT", Long.toString(ask)));
            }
            LatchdException trouble;
            try {
                Object answer = await(run(() -> ask(command, ask + timeoutMs)), true);
                reached = steadyMs();
                pause = FIRST_PAUSE_MS;
                if (!awaits || answer != null || waitMs != FOREVER && reached - began >= waitMs) {
                    return answer;
                }
                continue;
            } catch (LatchdException e) {
                trouble = e;
            }
            boolean over = waitMs != FOREVER && steadyMs() - began >= waitMs;
            if (!trouble.canPass() || steadyMs() - reached > patienceMs
                    || over && (trouble instanceof Backend || tries > places.size())) {
                throw trouble;
            }
            Thread.sleep(pause);
            pause = Math.min(2 * pause, LAST_PAUSE_MS);
        }
    }

    /** The same in a method that cannot throw InterruptedException. */
    private Object queryOrThrow(long waitMs, String... words) {
        try {
            return query(List.of(words), waitMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new LatchdException("INTERRUPTED", words[words.length > 2 ? 2 : 1]);
        }
    }

    private boolean isHeld(String name) {
        String state = textOf((List<?>) queryOrThrow(0, "LOCKINFO", name), "state");
        switch (state) {
            case "withheld":
                throw new Backend("BACKEND", "latchd grants " + name + " to nobody for now, and a hold of it may come back");
            case "lent": // and only the latchd that has it knows whether somebody holds it
                return !new Leader((List<?>) queryOrThrow(0, "LEADER", name)).owner().isEmpty();
            default:
                return !state.equals("free");
        }
    }

    /** A value out of a map, as Jedis has it: a list of entries, and of keys and values in RESP2. */
    private static String textOf(List<?> map, String key) {
        for (int i = 0; i < map.size(); i++) {
            Object field = map.get(i);
            Map.Entry<?, ?> entry = field instanceof Map.Entry ? (Map.Entry<?, ?>) field
                    : Map.entry(field, map.get(++i));
            if (key.equals(new String((byte[]) entry.getKey(), StandardCharsets.UTF_8))) {
                return new String((byte[]) entry.getValue(), StandardCharsets.UTF_8);
            }
        }
        throw new LatchdException("ERR", "latchd's answer lacks " + key);
    }

    /** A latch: named and used as java.util.concurrent.CountDownLatch, for processes. */
    public final class Latch {
        private final String name;

        private Latch(String name) {
            this.name = name;
        }

        private long ask(String... words) {
            return (Long) queryOrThrow(FOREVER, words);
        }

        /** False: one is set already. */
        public boolean trySetCount(long count) {
            return trySetCount(count, UUID.randomUUID().toString());
        }

        /** The same for an ID, which can be repeated, and has the same answer. */
        public boolean trySetCount(long count, String id) {
            return ask("LATCH", "SET", name, Long.toString(count), "ID", id) == 1;
        }

        /** Returns what is left. Each call counts. */
        public long countDown() {
            return countDown(UUID.randomUUID().toString());
        }

        /** The same for an ID, of 16 to 64 characters, which counts once, however often it is repeated. */
        public long countDown(String id) {
            return ask("LATCH", "COUNT", name, "ID", id);
        }

        /** Returns when it is open. Throws LatchGone if it was deleted or lost. */
        public void await() throws InterruptedException {
            query(List.of("LATCH", "AWAIT", name), FOREVER);
        }

        /** False: the time is over. */
        public boolean await(long time, TimeUnit unit) throws InterruptedException {
            return query(List.of("LATCH", "AWAIT", name), unit.toMillis(time)) != null;
        }

        /** False: there was none. */
        public boolean delete() {
            return ask("LATCH", "DELETE", name) == 1;
        }
    }

    /**
     * A lock that threads can share: each holds it for itself, and may enter it again. A thread that
     * is interrupted in its wait leaves the queue at once. Options are set before the first use.
     */
    public final class Lock implements java.util.concurrent.locks.Lock, AutoCloseable {
        private final List<String> names;
        private final List<String> words = new ArrayList<>();
        private final Set<String> options = new HashSet<>(); // which are the first of their words
        private final Map<Thread, Hold> mine = new ConcurrentHashMap<>();
        private String kind;
        private long leaseMs;
        private long heartbeatMs;
        private Runnable onLost;
        private Runnable onUncertain;

        private Lock(List<String> names) {
            this.names = names;
        }

        private String name() {
            return String.join(" and ", names);
        }

        /** In order of arrival, across all latchds. */
        public Lock fair() {
            return option("FAIR");
        }

        /** Shared with other readers. */
        public Lock read() {
            kind = "READ";
            return option(kind);
        }

        /** Excludes readers and writers. */
        public Lock write() {
            kind = "WRITE";
            return option(kind);
        }

        /** So many permits of a semaphore; {@code of}: the limit with which it is made if there is none. */
        public Lock permits(int permits, int of) {
            return option("PERMITS", Integer.toString(permits), "OF", Integer.toString(of));
        }

        /** 0 to 9: stands before those of less who came lately. */
        public Lock priority(int priority) {
            return option("PRIORITY", Integer.toString(priority));
        }

        /** Throws {@link Limit}, instead of waiting, where so many wait already. */
        public Lock queue(int waiting) {
            return option("QUEUE", Integer.toString(waiting));
        }

        /** Names an owner, who can enter again. */
        public Lock owner(String owner) {
            return option("OWNER", owner);
        }

        /** The hold ends by itself after that time: it is not renewed. */
        public Lock lease(Duration lease) {
            leaseMs = lease.toMillis();
            return option("LEASE", Long.toString(leaseMs));
        }

        /** Nobody else gets it for so long, though its holder is done, or gone: for tryLock(), without a wait. */
        public Lock atLeast(Duration atLeast) {
            return option("ATLEAST", Long.toString(atLeast.toMillis()));
        }

        /** How long the hold outlives its last connection. */
        public Lock grace(Duration grace) {
            return option("GRACE", Long.toString(grace.toMillis()));
        }

        /** How long the place in the queue outlives the connection. */
        public Lock keep(Duration keep) {
            return option("KEEP", Long.toString(keep.toMillis()));
        }

        /** What {@link Latchd#follow} tells others of the holder. */
        public Lock data(String data) {
            return option("DATA", data);
        }

        /** The lock is free so soon after this process, or its machine, has vanished; with no grace. */
        public Lock heartbeat(Duration heartbeat) {
            heartbeatMs = heartbeat.toMillis();
            return option("HEARTBEAT", Long.toString(heartbeatMs));
        }

        /** An option of LOCK that a later latchd has, and its words. */
        public Lock option(String... more) {
            options.add(more[0]);
            words.addAll(List.of(more));
            return this;
        }

        /** Called once, in a thread of its own, when a hold is lost. */
        public Lock onLost(Runnable call) {
            onLost = call;
            return this;
        }

        /** Called, in a thread of its own, when latchd, or a renewal that failed, makes it uncertain. */
        public Lock onUncertain(Runnable call) {
            onUncertain = call;
            return this;
        }

        private boolean take(long waitMs, boolean interruptibly) throws InterruptedException {
            if (interruptibly && Thread.interrupted()) {
                throw new InterruptedException();
            }
            Hold hold = mine.get(Thread.currentThread());
            if (hold != null && !isLost()) {
                hold.entries++;
                return true;
            }
            if (hold != null) {
                throw new LockLost(name() + " was lost, and has to be unlocked first");
            }
            hold = new Hold(this);
            if (!acquire(hold, waitMs, interruptibly)) {
                return false;
            }
            mine.put(Thread.currentThread(), hold);
            return true;
        }

        private boolean takeUninterruptibly(long waitMs) {
            try {
                return take(waitMs, false);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void lock() {
            takeUninterruptibly(FOREVER);
        }

        @Override
        public void lockInterruptibly() throws InterruptedException {
            take(FOREVER, true);
        }

        @Override
        public boolean tryLock() {
            return takeUninterruptibly(0);
        }

        @Override
        public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
            return take(Math.max(0, unit.toMillis(time)), true);
        }

        private Hold held() {
            Hold hold = mine.get(Thread.currentThread());
            if (hold == null) {
                throw new IllegalMonitorStateException(name() + " is not held by this thread");
            }
            return hold;
        }

        /** Throws LockLost if the lock was lost before. */
        @Override
        public void unlock() {
            Hold hold = held();
            if (--hold.entries == 0) {
                mine.remove(Thread.currentThread());
                release(hold);
            }
        }

        /** unlock(), for try-with-resources. */
        @Override
        public void close() {
            unlock();
        }

        /** The fencing token of this thread's hold, of the first of several names. */
        public long token() {
            return tokens().get(0);
        }

        /** In the order of the names. */
        public List<Long> tokens() {
            return List.copyOf(held().tokens);
        }

        /** Whether anybody holds it now, or one of its names. Throws Backend if that cannot be known. */
        public boolean isLocked() {
            return names.stream().anyMatch(Latchd.this::isHeld);
        }

        /** Whether this thread holds it, by the clock of this moment. */
        public boolean isHeldByCurrentThread() {
            return mine.containsKey(Thread.currentThread()) && !isLost();
        }

        /** Whether this thread's hold is lost, by the clock of this moment. */
        public boolean isLost() {
            Hold hold = held();
            synchronized (Latchd.this) {
                return hold.until <= now();
            }
        }

        /** No renewal was confirmed since it became so, and the lease is not over yet. */
        public boolean isUncertain() {
            Hold hold = held();
            synchronized (Latchd.this) {
                return hold.uncertain && hold.until > now();
            }
        }

        /** latchd has no conditions. */
        @Override
        public Condition newCondition() {
            throw new UnsupportedOperationException("latchd has no conditions");
        }
    }
}
