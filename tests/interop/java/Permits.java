import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;

/** A semaphore does what a line says: {@code VERB permits NAME ARGUMENT...}. */
final class Permits {
    static final String NONE = "false";
    private final RPermitExpirableSemaphore semaphore;

    Permits(RPermitExpirableSemaphore semaphore) {
        this.semaphore = semaphore;
    }

    String run(String verb, String[] arguments) throws InterruptedException {
        switch (verb) {
            case "acquire":
                return String.join(",", acquire(
                        Integer.parseInt(arguments[0]), Long.parseLong(arguments[1])));
            case "try":
                return ids(tryAcquire(Integer.parseInt(arguments[0]),
                        Long.parseLong(arguments[1]), Long.parseLong(arguments[2])));
            case "release":
                return release(arguments[0].split(",")) + "";
            case "state":
                return semaphore.getPermits() + " " + semaphore.availablePermits() + " "
                        + semaphore.acquiredPermits();
            case "make":
                return semaphore.trySetPermits(Integer.parseInt(arguments[0])) + "";
            case "limit":
                semaphore.setPermits(Integer.parseInt(arguments[0]));
                return "true";
            case "add":
                semaphore.addPermits(Integer.parseInt(arguments[0]));
                return "true";
            case "renew":
                return semaphore.updateLeaseTime(arguments[0], Long.parseLong(arguments[1]),
                        TimeUnit.MILLISECONDS) + "";
            default:
                throw new IllegalArgumentException("unknown verb " + verb);
        }
    }

    /** Without a time limit; 0 ms: without a lease. */
    List<String> acquire(int count, long leaseMs) throws InterruptedException {
        return leaseMs > 0
                ? semaphore.acquire(count, leaseMs, TimeUnit.MILLISECONDS)
                : semaphore.acquire(count);
    }

    /** -1 ms: without a lease. */
    List<String> tryAcquire(int count, long waitMs, long leaseMs) throws InterruptedException {
        return semaphore.tryAcquire(count, waitMs, leaseMs, TimeUnit.MILLISECONDS);
    }

    /** How many were given back. */
    int release(String... ids) {
        if (ids.length == 1) {
            return semaphore.tryRelease(ids[0]) ? 1 : 0;
        }
        return semaphore.tryRelease(List.of(ids));
    }

    private static String ids(List<String> granted) {
        return granted == null || granted.isEmpty() ? NONE : String.join(",", granted);
    }
}
