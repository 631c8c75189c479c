import java.util.UUID;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisException;

public class Example {
    static final RedisClient LATCHD = RedisClient.create("127.0.0.1", 5625);
    static final RedisClient RENEWALS = RedisClient.create("127.0.0.1", 5625);

    /** A lock, renewed in the background until it is closed. */
    static class Hold implements AutoCloseable {
        final String name;
        final String request = UUID.randomUUID().toString();
        final long token;
        private final Thread keeper = new Thread(this::keep);
        private volatile boolean ended;
        private volatile long until;
        private long pause;

        Hold(String name) {
            this.name = name;
            Object granted = null;
            while (granted == null) {
                granted = ask(LATCHD, "LOCK", name, "WAIT", "1500", "ID", request);
            }
            token = (Long) granted;
            try {
                renew();
            } catch (JedisException e) {
                close();
                throw e;
            }
            keeper.setDaemon(true);
            keeper.start();
        }

        static Object ask(RedisClient client, String command, String... words) {
            ProtocolCommand name = command::getBytes;
            return client.sendCommand(name, words);
        }

        boolean lost() {
            return System.nanoTime() - until >= 0;
        }

        private void renew() {
            long sent = System.nanoTime();
            long left = (Long) ask(RENEWALS, "RENEW", name, "ID", request);
            until = sent + left * 1_000_000;
            pause = left / 3;
        }

        private void keep() {
            while (!ended && !lost()) {
                try {
                    Thread.sleep(pause);
                    renew();
                } catch (InterruptedException e) {
                    return;
                } catch (JedisException e) {
                    pause = 100; // latchd may be restarting
                    if (String.valueOf(e.getMessage()).startsWith("NOTHELD")) {
                        until = System.nanoTime();
                    }
                }
            }
        }

        @Override
        public void close() {
            ended = true;
            keeper.interrupt();
            ask(RENEWALS, "UNLOCK", name, "ID", request);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        try (Hold hold = new Hold("job")) {
            System.out.println("working with fencing token " + hold.token);
            for (int step = 0; step < 20; step++) {
                if (hold.lost()) {
                    throw new IllegalStateException("the lock is lost");
                }
                Thread.sleep(100);
            }
        }
    }
}
