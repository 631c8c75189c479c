import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** ZooKeeper's lock recipe: whoever has the lowest number; each watches the one before it. */
public final class ZooKeeperRival {
    private static final int SESSION_MS = 30000;

    private static ZooKeeper connect(String address) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper session = new ZooKeeper(address, SESSION_MS, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        return session;
    }

    private static void folder(ZooKeeper session, String path) throws Exception {
        try {
            session.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException e) {
            return;
        }
    }

    private static Loop.Held open(String address, String name) throws Exception {
        ZooKeeper session = connect(address);
        String under = "/rival-" + name;
        folder(session, under);
        return new Loop.Held() {
            private String own;

            @Override
            public void take() throws Exception {
                own = session.create(under + "/n", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE,
                        CreateMode.EPHEMERAL_SEQUENTIAL);
                String mine = own.substring(under.length() + 1);
                while (true) {
                    List<String> all = session.getChildren(under, false);
                    Collections.sort(all);
                    int at = all.indexOf(mine);
                    if (at == 0) {
                        return;
                    }
                    CountDownLatch gone = new CountDownLatch(1);
                    if (session.exists(under + "/" + all.get(at - 1), e -> gone.countDown())
                            != null) {
                        gone.await();
                    }
                }
            }

            @Override
            public void give() throws Exception {
                session.delete(own, -1);
            }
        };
    }

    public static void main(String[] args) throws Exception {
        Loop.measure(name -> open(args[0], name), args);
    }
}
