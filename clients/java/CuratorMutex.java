import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.data.ACL;

/** Apache Curator's InterProcessMutex. A client has a session of its own, whose timeout is the TTL. */
public final class CuratorMutex implements Adapter.Client {
  private final CuratorFramework session;
  private final Map<String, InterProcessMutex> mutexes = new HashMap<>();

  CuratorMutex(String url, int ttlMillis) {
    String place = url.replaceFirst("^zk://", "");
    int at = place.lastIndexOf('@');
    var builder = CuratorFrameworkFactory.builder()
        .connectString(place.substring(at + 1))
        .sessionTimeoutMs(ttlMillis)
        .retryPolicy(new ExponentialBackoffRetry(1000, 3)); // as in Curator's guide
    if (at > 0) {
      String login = URLDecoder.decode(place.substring(0, at).replace("+", "%2B"), StandardCharsets.UTF_8);
      builder.authorization("digest", login.getBytes(StandardCharsets.UTF_8)).aclProvider(new Owner());
    }
    session = builder.build();
    session.start();
  }

  private static final class Owner implements ACLProvider {
    public List<ACL> getDefaultAcl() { return Ids.CREATOR_ALL_ACL; }
    public List<ACL> getAclForPath(String path) { return Ids.CREATOR_ALL_ACL; }
  }

  public String carryOut(String what, String key, long ttlMillis, long waitMillis) throws Exception {
    // "lockbench:<run>:<name>" becomes "/lockbench/<run>/<name>", where lockbench cleans up.
    var mutex = mutexes.computeIfAbsent(key, k -> new InterProcessMutex(session, "/" + String.join("/", k.split(":", 3))));
    switch (what) {
      case "acquire":
        return mutex.acquire(waitMillis, TimeUnit.MILLISECONDS) ? "acquired" : "taken";
      case "release":
        if (!mutex.isOwnedByCurrentThread()) return "not_held";
        mutex.release();
        return "released";
      case "held":
        return String.valueOf(mutex.isOwnedByCurrentThread());
      case "close":
        session.close();
        return "";
      default:
        return "unsupported";
    }
  }

  public static void main(String[] args) throws Exception {
    String version = CuratorFramework.class.getPackage().getImplementationVersion();
    var traits = Map.of("expiry", "session", "fencing", false, "reentrant", true, "renews", true, "waiting", "queue");
    Adapter.serve(Map.of("name", "Curator InterProcessMutex", "version", version == null ? "unknown" : version, "store",
        "zookeeper", "traits", traits),
        hello -> new CuratorMutex(hello.at("/stores/zookeeper").asText(), hello.get("ttl_ms").asInt()));
  }
}
