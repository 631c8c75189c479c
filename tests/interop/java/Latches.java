import java.util.concurrent.TimeUnit;
import org.redisson.api.RCountDownLatch;

/** A latch does what a line says: {@code VERB latch NAME ARGUMENT...}. */
final class Latches {
    private final RCountDownLatch latch;

    Latches(RCountDownLatch latch) {
        this.latch = latch;
    }

    String run(String verb, String[] arguments) throws InterruptedException {
        switch (verb) {
            case "set":
                return latch.trySetCount(Long.parseLong(arguments[0])) + "";
            case "count":
                latch.countDown();
                return "true";
            case "left":
                return latch.getCount() + "";
            case "await":
                latch.await();
                return "true";
            case "try":
                return latch.await(Long.parseLong(arguments[0]), TimeUnit.MILLISECONDS) + "";
            case "delete":
                return latch.delete() + "";
            default:
                throw new IllegalArgumentException("unknown verb " + verb);
        }
    }
}
