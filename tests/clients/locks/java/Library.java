import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** A lock library, over a connection of its own. */
interface Library {
    /** What was acquired. A thread of its own calls all functions of it. */
    interface Held {
        /** False: it was not held any more. */
        boolean extend(long leaseMs) throws Exception;

        boolean release() throws Exception;
    }

    /** Null: refused. A wait of 0 is one try. */
    Held acquire(String name, long leaseMs, long waitMs) throws Exception;

    static LettuceConnectionFactory connect(String host, int port) {
        LettuceConnectionFactory factory = new LettuceConnectionFactory(host, port);
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }
}
