import java.util.concurrent.TimeUnit;
import latchd.Latchd;

/** Takes a lock with the installed package: Take URL NAME. Prints the token; gives it back at the end of its input. */
public final class Take {
    private Take() { }

    public static void main(String[] args) throws Exception {
        Latchd.Lock lock = new Latchd(args[0]).lock(args[1]);
        if (!lock.tryLock(10, TimeUnit.SECONDS)) {
            throw new IllegalStateException("somebody else has it");
        }
        try (lock) {
            System.out.println(lock.token());
            System.in.readAllBytes();
        }
    }
}
