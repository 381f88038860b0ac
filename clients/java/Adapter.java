import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;

/** What the Java adapters share: reads requests, carries each client on a thread of its own, and writes the answers. */
final class Adapter {
  /** One client. Answers are outcomes; nothing ("") is an empty answer. */
  interface Client {
    /** An answer that is "true" or "false" belongs to `held`. */
    String carryOut(String what, String key, long ttlMillis, long waitMillis) throws Exception;
  }

  private static final ObjectMapper JSON = new ObjectMapper();

  /** `about`: the answer to hello. `connect` makes a client for it. */
  static void serve(Map<String, Object> about, Function<JsonNode, Client> connect) throws Exception {
    PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err); // what a library prints must not stand among the answers
    Map<Integer, ExecutorService> threads = new HashMap<>();
    Map<Integer, Client> clients = new ConcurrentHashMap<>();
    JsonNode[] hello = {null};
    var lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode request = JSON.readTree(line);
      String what = request.get("do").asText();
      ObjectNode answer = JSON.createObjectNode().put("id", request.get("id").asLong());
      if (what.equals("hello")) hello[0] = request;
      int number = request.path("client").asInt(-1); // an echo has no client, but takes the same way
      threads.computeIfAbsent(number, n -> Executors.newSingleThreadExecutor()).execute(() -> {
        if (what.equals("hello")) answer.setAll((ObjectNode) JSON.valueToTree(about));
        else if (what.equals("cancel")) answer.put("outcome", "unsupported");
        else if (!what.equals("echo")) carryOut(request, what, answer, clients, number, () -> connect.apply(hello[0]));
        synchronized (answers) {
          answers.print(answer + "\n");
          answers.flush();
        }
      });
    }
    Runtime.getRuntime().halt(0); // threads may wait in the library
  }

  private static void carryOut(JsonNode request, String what, ObjectNode answer, Map<Integer, Client> clients, int number,
      Supplier<Client> connect) {
    try {
      Client client = clients.computeIfAbsent(number, n -> connect.get());
      String said = client.carryOut(what, request.path("key").asText(), request.path("ttl_ms").asLong(),
          request.path("wait_ms").asLong());
      if (what.equals("held")) answer.put("held", Boolean.parseBoolean(said));
      else if (!said.isEmpty()) answer.put("outcome", said);
    } catch (Exception problem) {
      answer.put("outcome", "failed").put("definite", !clients.containsKey(number)).put("reason", problem.toString());
    }
    if (what.equals("close")) clients.remove(number);
  }
}
