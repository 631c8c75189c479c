import io.lettuce.core.ClientOptions;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * latchd from Lettuce, which sends everybody's commands over one connection.
 *
 * <p>LettuceClient HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO...,
 * see ../../README.md
 */
public class LettuceClient {
    enum Command implements ProtocolKeyword {
        LOCK, UNLOCK, RENEW, FORCEUNLOCK;

        @Override
        public byte[] getBytes() {
            return name().getBytes();
        }
    }

    private final RedisClient client;
    private final StatefulRedisConnection<String, String> latchd;
    private final String name;

    LettuceClient(String[] args) {
        name = args[6];
        RedisURI.Builder uri = RedisURI.builder().withHost(args[0])
            .withPort(Integer.parseInt(args[1])).withSsl(!args[5].equals("-"));
        if (!args[3].equals("-")) {
            uri.withAuthentication(args[3], args[4].toCharArray());
        } else if (!args[4].equals("-")) {
            uri.withPassword(args[4].toCharArray());
        }
        ClientOptions.Builder options = ClientOptions.builder();
        if (!args[2].equals("-")) {
            options.protocolVersion(args[2].equals("3") ? ProtocolVersion.RESP3
                                                        : ProtocolVersion.RESP2);
        }
        if (!args[5].equals("-")) {
            options.sslOptions(SslOptions.builder().trustManager(new File(args[5])).build());
        }
        client = RedisClient.create(uri.build());
        client.setOptions(options.build());
        latchd = client.connect();
    }

    static void check(boolean good, Object got) {
        if (!good) {
            throw new AssertionError("unexpected: " + got);
        }
    }

    RedisFuture<Long> send(Command command, Object... words) {
        return sendTo(latchd, command, words);
    }

    static RedisFuture<Long> sendTo(StatefulRedisConnection<String, String> to,
                                    Command command, Object... words) {
        CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
        for (Object word : words) {
            args.add(String.valueOf(word));
        }
        return to.async().dispatch(command, new IntegerOutput<>(StringCodec.UTF8), args);
    }

    /** The answer, or null. */
    Long ask(Command command, Object... words) throws Exception {
        try {
            return send(command, words).get();
        } catch (ExecutionException error) {
            throw (Exception) error.getCause();
        }
    }

    void refused(String wanted, Command command, Object... words) throws Exception {
        try {
            check(false, ask(command, words));
        } catch (RedisCommandExecutionException error) {
            check(error.getMessage().startsWith(wanted), error);
        }
    }

    void unlock(Long token) throws Exception {
        check(ask(Command.UNLOCK, name, "TOKEN", token) == 0, token);
    }

    void version() {
        System.out.println("version " + LettuceVersion.getVersion());
    }

    void hello() throws Exception {
        check(latchd.sync().ping().equals("PONG"), "no PONG");
        Long token = ask(Command.LOCK, name, "WAIT", 0);
        check(token > 1L << 31, token);
        unlock(token);
    }

    void busy() throws Exception {
        Long token = ask(Command.LOCK, name);
        check(ask(Command.LOCK, name, "WAIT", 0) == null, "granted");
        check(ask(Command.LOCK, name, "WAIT", 50) == null, "granted");
        check(ask(Command.RENEW, name, "TOKEN", token) > 0, "no lease");
        unlock(token);
        unlock(ask(Command.LOCK, name, "FAIR", "WAIT", 0));
    }

    void reenter() throws Exception {
        Long token = ask(Command.LOCK, name, "OWNER", "ann");
        check(ask(Command.LOCK, name, "OWNER", "ann").equals(token), token);
        check(ask(Command.UNLOCK, name, "OWNER", "ann") == 1, "not one left");
        check(ask(Command.UNLOCK, name, "OWNER", "ann") == 0, "some left");
    }

    void lose() throws Exception {
        Long token = ask(Command.LOCK, name);
        check(ask(Command.FORCEUNLOCK, name, "TOKEN", token) == 1, token);
        refused("NOTHELD ", Command.UNLOCK, name, "TOKEN", token);
        refused("NOTHELD ", Command.RENEW, name, "TOKEN", token);
        refused("ERR unknown option", Command.LOCK, name, "SOON");
    }

    void share() throws Exception {
        Long one = ask(Command.LOCK, name, "READ");
        Long two = ask(Command.LOCK, name, "READ");
        check(ask(Command.LOCK, name, "WRITE", "WAIT", 0) == null, "granted");
        unlock(one);
        unlock(two);
        unlock(ask(Command.LOCK, name, "WRITE", "WAIT", 0));
    }

    void pipeline() throws Exception {
        latchd.setAutoFlushCommands(false);
        RedisFuture<Long> one = send(Command.LOCK, name + "1", "WAIT", 0);
        RedisFuture<Long> two = send(Command.LOCK, name + "2", "WAIT", 0);
        RedisFuture<Long> none = send(Command.LOCK, name + "1", "WAIT", 0);
        latchd.flushCommands();
        latchd.setAutoFlushCommands(true);
        check(none.get() == null, none);
        check(ask(Command.UNLOCK, name + "1", "TOKEN", one.get()) == 0, one);
        check(ask(Command.UNLOCK, name + "2", "TOKEN", two.get()) == 0, two);
    }

    /**
     * Many threads over one connection: each asks now and then, nobody waits for a reply that
     * has to wait, and all get their turn in the order in which they came.
     */
    void crowd() throws Exception {
        List<Integer> turns = Collections.synchronizedList(new ArrayList<>());
        List<Integer> all = new ArrayList<>();
        List<Future<?>> work = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(10);
        Long first = ask(Command.LOCK, name);
        for (int i = 0; i < 10; i++) {
            int number = i;
            String request = name + "-" + number + "-of-a-crowd";
            send(Command.LOCK, name, "WAIT", 0, "ID", request, "KEEP", 30000).get();
            all.add(number);
            work.add(pool.submit(() -> takeTurn(request, () -> turns.add(number))));
        }
        unlock(first);
        for (Future<?> one : work) {
            one.get();
        }
        pool.shutdown();
        check(turns.equals(all), turns);
    }

    private Void takeTurn(String request, Runnable work) throws Exception {
        while (ask(Command.LOCK, name, "WAIT", 0, "ID", request, "KEEP", 3000) == null) {
            Thread.sleep(20);
        }
        work.run();
        check(ask(Command.UNLOCK, name, "ID", request) == 0, request);
        return null;
    }

    private Void takeTurn(StatefulRedisConnection<String, String> to, String request)
            throws Exception {
        while (sendTo(to, Command.LOCK, name, "WAIT", 4000, "ID", request).get() == null) {
            // again
        }
        Thread.sleep(50);
        check(sendTo(to, Command.UNLOCK, name, "ID", request).get() == 0, request);
        return null;
    }

    /** How many ms four of them need, over these connections. */
    long spent(String kind, List<StatefulRedisConnection<String, String>> to)
            throws Exception {
        List<Future<?>> work = new ArrayList<>();
        ExecutorService pool = Executors.newFixedThreadPool(4);
        long began = System.nanoTime();
        for (int i = 0; i < 4; i++) {
            String request = name + "-" + kind + "-" + i + "-in-turn";
            StatefulRedisConnection<String, String> one = to.get(i % to.size());
            work.add(pool.submit(() -> takeTurn(one, request)));
        }
        for (Future<?> one : work) {
            one.get();
        }
        pool.shutdown();
        return (System.nanoTime() - began) / 1000000;
    }

    /**
     * Four threads take turns by long polls over one connection: that takes them not twice as
     * long as with a connection each.
     */
    void turns() throws Exception {
        List<StatefulRedisConnection<String, String>> four = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            four.add(client.connect());
        }
        long many = spent("each", four);
        long one = spent("one", List.of(latchd));
        four.forEach(StatefulRedisConnection::close);
        System.out.println("turns of 4 x 50 ms: " + one + " ms over one connection, " + many
            + " over four");
        check(one <= 2 * many, one);
    }

    void multi() throws Exception {
        latchd.sync().multi();
        RedisFuture<Long> one = send(Command.LOCK, name, "WAIT", 0);
        RedisFuture<Long> none = send(Command.LOCK, name, "WAIT", 0);
        TransactionResult replies = latchd.sync().exec();
        check(replies.size() == 2 && none.get() == null, replies);
        unlock(one.get());
    }

    void events() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        try (StatefulRedisPubSubConnection<String, String> listener = client.connectPubSub()) {
            listener.addListener(new RedisPubSubAdapter<>() {
                @Override
                public void message(String channel, String text) {
                    told.add(channel + " " + text);
                }

                @Override
                public void message(String pattern, String channel, String text) {
                    told.add(channel + " " + text);
                }
            });
            listener.sync().subscribe("lost:" + name);
            listener.sync().psubscribe("g*:" + name);
            Long token = ask(Command.LOCK, name, "OWNER", "joe");
            hear(told, "granted:" + name + " joe " + token);
            check(ask(Command.FORCEUNLOCK, name, "OWNER", "joe") == 1, token);
            hear(told, "lost:" + name + " joe " + token);
        }
    }

    static void hear(BlockingQueue<String> told, String wanted) throws InterruptedException {
        String got = told.poll(5, TimeUnit.SECONDS);
        check(wanted.equals(got), got);
    }

    /**
     * Asks until there is a token. With patience 0 the connection is shared: it asks now and
     * then, and stops nobody; KEEP keeps the place in between.
     */
    void await(String request, String patience) throws Exception {
        Long token = null;
        int asked = 0;
        while (token == null) {
            try {
                asked++;
                token = ask(Command.LOCK, name, "WAIT", patience, "ID", request,
                            "KEEP", 3000);
                if (token == null && patience.equals("0")) {
                    Thread.sleep(200);
                }
            } catch (RedisCommandExecutionException error) {
                throw error;
            } catch (RedisException again) {
                Thread.sleep(50);
            }
        }
        System.out.println("token " + token + " " + asked);
        System.out.println("left " + ask(Command.UNLOCK, name, "ID", request));
    }

    void run(String scenario) throws Exception {
        switch (scenario) {
            case "version" -> version();
            case "hello" -> hello();
            case "busy" -> busy();
            case "reenter" -> reenter();
            case "lose" -> lose();
            case "share" -> share();
            case "pipeline" -> pipeline();
            case "multi" -> multi();
            case "crowd" -> crowd();
            case "turns" -> turns();
            case "events" -> events();
            default -> throw new IllegalArgumentException(scenario);
        }
        System.out.println("ok " + scenario);
    }

    public static void main(String[] args) throws Exception {
        LettuceClient self = new LettuceClient(args);
        if (args[7].equals("wait")) {
            self.await(args[8], args[9]);
        } else {
            for (int i = 7; i < args.length; i++) {
                self.run(args[i]);
            }
        }
        self.client.shutdown(0, 1, TimeUnit.SECONDS);
    }
}
