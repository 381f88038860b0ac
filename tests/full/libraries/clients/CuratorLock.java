import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;

/**
 * Holds Apache Curator's InterProcessMutex and prints what it did, as JSON: so many clients hold a lock each, one hold
 * after the other.
 *
 * Usage: CuratorLock HOSTS USER PASSWORD LOCKS HOLDS SECONDS
 */
public final class CuratorLock {
  public static void main(String[] args) throws Exception {
    final int locks = Integer.parseInt(args[3]);
    final int holds = Integer.parseInt(args[4]);
    final long millis = (long) (Double.parseDouble(args[5]) * 1000);
    final List<Double> held = Collections.synchronizedList(new ArrayList<>());
    final List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < locks; ++i) {
      final CuratorFramework session = connect(args);
      final InterProcessMutex lock = new InterProcessMutex(session, "/locks/" + i);
      // A cold JVM learns late of its grant, so its hold would be shorter than its node's lifetime.
      final InterProcessMutex warm = new InterProcessMutex(session, "/warm-up/" + i);
      for (int n = 0; n < 20; ++n) {
        warm.acquire();
        warm.release();
      }
      threads.add(new Thread(() -> {
        try {
          for (int hold = 0; hold < holds; ++hold) {
            lock.acquire();
            final long begun = System.nanoTime();
            Thread.sleep(millis);
            held.add((System.nanoTime() - begun) / 1e9);
            lock.release();
            Thread.sleep(millis / 2);
          }
        } catch (Exception failure) {
          failure.printStackTrace();
          System.exit(2);
        }
      }));
    }
    for (Thread thread : threads) thread.start();
    for (Thread thread : threads) thread.join();
    final double mean = held.stream().mapToDouble(Double::doubleValue).average().orElse(0);
    System.out.println("{\"holds\": " + held.size() + ", \"mean\": " + mean + "}");
    System.exit(0);
  }

  private static CuratorFramework connect(String[] args) throws Exception {
    final CuratorFramework session = CuratorFrameworkFactory.builder()
        .connectString(args[0])
        .authorization("digest", (args[1] + ":" + args[2]).getBytes())
        .aclProvider(new ACLProvider() {
          public List<ACL> getDefaultAcl() { return ZooDefs.Ids.CREATOR_ALL_ACL; }
          public List<ACL> getAclForPath(String path) { return ZooDefs.Ids.CREATOR_ALL_ACL; }
        })
        .retryPolicy(new RetryOneTime(100))
        .sessionTimeoutMs(10_000)
        .build();
    session.start();
    session.blockUntilConnected();
    return session;
  }
}
