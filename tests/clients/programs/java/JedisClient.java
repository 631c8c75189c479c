import java.io.FileInputStream;
import java.io.IOException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * latchd from Jedis.
 *
 * <p>JedisClient HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../../README.md
 */
public class JedisClient {
    enum Command implements ProtocolCommand {
        LOCK, UNLOCK, RENEW, FORCEUNLOCK;

        @Override
        public byte[] getRaw() {
            return name().getBytes();
        }
    }

    private final RedisClient latchd;
    private final String name;

    JedisClient(String[] args) throws Exception {
        name = args[6];
        DefaultJedisClientConfig.Builder config = DefaultJedisClientConfig.builder();
        if (!args[2].equals("-")) {
            config.protocol(args[2].equals("3") ? RedisProtocol.RESP3 : RedisProtocol.RESP2);
        }
        if (!args[3].equals("-")) {
            config.user(args[3]);
        }
        if (!args[4].equals("-")) {
            config.password(args[4]);
        }
        if (!args[5].equals("-")) {
            config.ssl(true).sslSocketFactory(trusting(args[5]).getSocketFactory());
        }
        latchd = RedisClient.builder()
            .hostAndPort(new HostAndPort(args[0], Integer.parseInt(args[1])))
            .clientConfig(config.build()).build();
    }

    /** TLS that trusts that certificate. */
    static SSLContext trusting(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream pem = new FileInputStream(path)) {
            store.setCertificateEntry("ca",
                CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        TrustManagerFactory trust =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    static void check(boolean good, Object got) {
        if (!good) {
            throw new AssertionError("unexpected: " + got);
        }
    }

    static String text(Object token) {
        return String.valueOf(token);
    }

    Object ask(Command command, String... words) {
        CommandArguments request = new CommandArguments(command);
        return latchd.executeCommand(request.addObjects((Object[]) words));
    }

    /** The message of the error that this must be answered with. */
    void refused(String wanted, Command command, String... words) {
        try {
            check(false, ask(command, words));
        } catch (JedisDataException error) {
            check(error.getMessage().startsWith(wanted), error);
        }
    }

    void unlock(Object token) {
        check((long) ask(Command.UNLOCK, name, "TOKEN", text(token)) == 0, token);
    }

    void version() throws IOException {
        Properties properties = new Properties();
        properties.load(RedisClient.class.getResourceAsStream("pom.properties"));
        System.out.println("version " + properties.getProperty("version"));
    }

    void hello() {
        check(latchd.ping().equals("PONG"), "no PONG");
        Object token = ask(Command.LOCK, name, "WAIT", "0");
        check((long) token > 1L << 31, token);
        unlock(token);
    }

    void busy() {
        Object token = ask(Command.LOCK, name);
        check(ask(Command.LOCK, name, "WAIT", "0") == null, "granted");
        check(ask(Command.LOCK, name, "WAIT", "50") == null, "granted");
        check((long) ask(Command.RENEW, name, "TOKEN", text(token)) > 0, "no lease");
        unlock(token);
        unlock(ask(Command.LOCK, name, "FAIR", "WAIT", "0"));
    }

    void reenter() {
        Object token = ask(Command.LOCK, name, "OWNER", "ann");
        check(ask(Command.LOCK, name, "OWNER", "ann").equals(token), token);
        check((long) ask(Command.UNLOCK, name, "OWNER", "ann") == 1, "not one left");
        check((long) ask(Command.UNLOCK, name, "OWNER", "ann") == 0, "some left");
    }

    void lose() {
        String token = text(ask(Command.LOCK, name));
        check((long) ask(Command.FORCEUNLOCK, name, "TOKEN", token) == 1, token);
        refused("NOTHELD ", Command.UNLOCK, name, "TOKEN", token);
        refused("NOTHELD ", Command.RENEW, name, "TOKEN", token);
        refused("ERR unknown option", Command.LOCK, name, "SOON");
    }

    void share() {
        Object one = ask(Command.LOCK, name, "READ");
        Object two = ask(Command.LOCK, name, "READ");
        check(ask(Command.LOCK, name, "WRITE", "WAIT", "0") == null, "granted");
        unlock(one);
        unlock(two);
        unlock(ask(Command.LOCK, name, "WRITE", "WAIT", "0"));
    }

    void pipeline() {
        List<Response<Object>> replies = new ArrayList<>();
        try (Pipeline batch = latchd.pipelined()) {
            for (String which : List.of("1", "2", "1")) {
                replies.add(batch.sendCommand(Command.LOCK, name + which, "WAIT", "0"));
            }
        }
        check(replies.get(2).get() == null, "granted");
        try (Pipeline batch = latchd.pipelined()) {
            for (int i = 0; i < 2; i++) {
                batch.sendCommand(Command.UNLOCK, name + (i + 1), "TOKEN",
                                  text(replies.get(i).get()));
            }
            check(batch.syncAndReturnAll().equals(List.of(0L, 0L)), "not released");
        }
    }

    void multi() {
        try (AbstractTransaction batch = latchd.multi()) {
            batch.sendCommand(Command.LOCK, name, "WAIT", "0");
            batch.sendCommand(Command.LOCK, name, "WAIT", "0");
            List<Object> replies = batch.exec();
            check(replies.get(1) == null, replies);
            unlock(replies.get(0));
        }
    }

    void events() throws InterruptedException {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        JedisPubSub listener = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                psubscribe("g*:" + name);
            }

            @Override
            public void onPSubscribe(String pattern, int count) {
                told.add("ready");
            }

            @Override
            public void onMessage(String channel, String text) {
                told.add(channel + " " + text);
            }

            @Override
            public void onPMessage(String pattern, String channel, String text) {
                told.add(channel + " " + text);
            }
        };
        Thread thread = new Thread(() -> latchd.subscribe(listener, "lost:" + name));
        thread.start();
        hear(told, "ready");
        Object token = ask(Command.LOCK, name, "OWNER", "joe");
        hear(told, "granted:" + name + " joe " + token);
        check((long) ask(Command.FORCEUNLOCK, name, "OWNER", "joe") == 1, token);
        hear(told, "lost:" + name + " joe " + token);
        listener.unsubscribe();
        listener.punsubscribe();
        thread.join();
    }

    static void hear(BlockingQueue<String> told, String wanted) throws InterruptedException {
        String got = told.poll(5, TimeUnit.SECONDS);
        check(wanted.equals(got), got);
    }

    /** Asks until it is answered: Jedis gives up after 2 s, and the ID makes up for it. */
    Object insist(Command command, String... words) throws InterruptedException {
        while (true) {
            try {
                return ask(command, words);
            } catch (JedisConnectionException again) {
                Thread.sleep(50);
            }
        }
    }

    void await(String request, String patience) throws InterruptedException {
        Object token = null;
        int asked = 0;
        while (token == null) {
            try {
                asked++;
                token = ask(Command.LOCK, name, "WAIT", patience, "ID", request);
            } catch (JedisConnectionException again) {
                Thread.sleep(50);
            }
        }
        System.out.println("token " + token + " " + asked);
        System.out.println("left " + insist(Command.UNLOCK, name, "ID", request));
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
            case "events" -> events();
            default -> throw new IllegalArgumentException(scenario);
        }
        System.out.println("ok " + scenario);
    }

    public static void main(String[] args) throws Exception {
        JedisClient client = new JedisClient(args);
        if (args[7].equals("wait")) {
            client.await(args[8], args[9]);
        } else {
            for (int i = 7; i < args.length; i++) {
                client.run(args[i]);
            }
        }
        client.latchd.close();
    }
}
