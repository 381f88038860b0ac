import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Apache Curator's InterProcessMutex under lockbench's load: so many clients, each with a session of
 * its own, on a key each or all on one, without pause. Prints sections per second.
 *
 * Usage: CuratorBench HOSTS CLIENTS (per-client|1) WARMUP_SECONDS SECONDS
 */
public final class CuratorBench {
  public static void main(String[] args) throws Exception {
    final String hosts = args[0];
    final int clients = Integer.parseInt(args[1]);
    final boolean keyPerClient = args[2].equals("per-client");
    final long warmupMillis = (long) (Double.parseDouble(args[3]) * 1000);
    final long millis = (long) (Double.parseDouble(args[4]) * 1000);
    final AtomicBoolean over = new AtomicBoolean();
    final LongAdder sections = new LongAdder();
    final long[] counters = new long[clients];
    final List<Thread> threads = new ArrayList<>();
    final List<CuratorFramework> sessions = new ArrayList<>();
    for (int i = 0; i < clients; ++i) {
      final int key = keyPerClient ? i : 0;
      final CuratorFramework session =
          CuratorFrameworkFactory.newClient(hosts, 10_000, 3_000, new RetryOneTime(100));
      session.start();
      session.blockUntilConnected();
      sessions.add(session);
      final InterProcessMutex lock = new InterProcessMutex(session, "/curator-bench/" + key);
      threads.add(new Thread(() -> {
        try {
          while (!over.get()) {
            lock.acquire();
            try {
              ++counters[key];
            } finally {
              lock.release();
            }
            sections.increment();
          }
        } catch (Exception failure) {
          failure.printStackTrace();
          System.exit(2);
        }
      }));
    }
    for (Thread thread : threads) thread.start();
    Thread.sleep(warmupMillis);
    final long begun = sections.sum(), begin = System.nanoTime();
    Thread.sleep(millis);
    final long done = sections.sum() - begun;
    final double seconds = (System.nanoTime() - begin) / 1e9;
    over.set(true);
    for (Thread thread : threads) thread.join();
    for (CuratorFramework session : sessions) session.close();
    System.out.printf("%.0f%n", done / seconds);
  }
}
