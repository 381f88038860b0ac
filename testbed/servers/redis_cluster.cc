#include "testbed/servers/redis_cluster.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "testbed/process/parallel.h"

namespace lockbench::testbed {
namespace {

using Done = tl::expected<void, std::string>;

constexpr std::chrono::seconds kCompleteWithin{30};

bool says(const Server& server, std::string_view command, std::string_view line) {
  return ask_redis_text(server, command).find(fmt::format("{}\r\n", line)) != std::string::npos;
}

std::string id_of(const Server& server) { return ask_redis_text(server, "CLUSTER MYID"); }

/// What the answer to CLUSTER INFO says of it.
std::string said_of(const std::string& info, std::string_view what) {
  const std::size_t at = info.find(what);
  return at == std::string::npos ? "" : info.substr(at, info.find("\r\n", at) - at);
}

/// Whether, by this server, the one with the id is a primary with slots: "<id> address master - 0
/// 1700000000000 2 connected 0-5461".
bool leads_slots(const Server& server, const std::string& id) {
  const std::string nodes = ask_redis_text(server, "CLUSTER NODES");
  const std::size_t begin = id.empty() ? std::string::npos : nodes.find(id + " 127.0.0.1:");
  if (begin == std::string::npos) return false;
  const std::string line = nodes.substr(begin, nodes.find('\n', begin) - begin);
  return line.find("master ") != std::string::npos && line.find(" connected ") != std::string::npos;
}

}  // namespace

std::vector<Server*> RedisCluster::servers() const {
  std::vector<Server*> all;
  for (const auto& group : {&primaries_, &replicas_}) {
    for (const auto& server : *group) all.push_back(server.get());
  }
  return all;
}

std::string RedisCluster::url() const {
  std::vector<std::uint16_t> ports;
  for (const Server* server : servers()) ports.push_back(server->port());
  // Each server's own form is that of a client that knows no cluster.
  UrlForm form = primaries_.front()->url_form();
  form.before.insert(form.before.find("://"), "+cluster");
  return form.on(ports);
}

std::string RedisCluster::missing() const {
  // A server that does not know the newest epoch would take over a slot with an old one, and lose
  // it.
  std::set<std::string> newest, own;
  for (const Server* server : servers()) {
    const std::string known = ask_redis_text(*server, "CLUSTER INFO");
    newest.insert(said_of(known, "cluster_current_epoch:"));
    own.insert(said_of(known, "cluster_my_epoch:"));
    for (const char* line : {"cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6",
                             "cluster_size:3"}) {
      if (known.find(line) == std::string::npos) {
        return fmt::format("{} does not say {}", server->address(), line);
      }
    }
  }
  if (newest.size() > 1) return "the servers know different epochs";
  // A replica's is that of its primary.
  if (own.size() != kShards) return "the epochs of the primaries are not distinct";
  for (const auto& replica : replicas_) {
    if (!says(*replica, "INFO replication", "master_link_status:up")) {
      return fmt::format("{} follows no primary", replica->address());
    }
  }
  return {};
}

Done RedisCluster::await_ok() {
  std::string still;
  if (comes_true(kCompleteWithin, [&] { return (still = missing()).empty(); })) return {};
  return tl::unexpected("the cluster did not become complete: " + still);
}

void RedisCluster::introduce() {
  const std::vector<Server*> all = servers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Without this, servers with the same epoch would first have to agree on another.
    tell_redis(*all[i], fmt::format("CLUSTER SET-CONFIG-EPOCH {}", i + 1));
  }
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    // As shard_of() has it: rounded up.
    const auto first_of = [&](std::size_t one) {
      return (one * static_cast<std::size_t>(kSlots) + kShards - 1) / kShards;
    };
    tell_redis(primary(shard), fmt::format("CLUSTER ADDSLOTSRANGE {} {}", first_of(shard),
                                           first_of(shard + 1) - 1));
  }
  for (std::size_t i = 1; i < all.size(); ++i) {
    tell_redis(*all[0],
               fmt::format("CLUSTER MEET 127.0.0.1 {} {}", all[i]->port(), all[i]->ports().back()));
  }
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    // The server must first have heard of the other one.
    tell_redis(replica(shard), fmt::format("CLUSTER REPLICATE {}", id_of(primary(shard))),
               kCompleteWithin);
  }
}

Done RedisCluster::await_takeover(std::size_t shard) {
  const Server& successor = replica(shard);
  const std::string id = id_of(successor);
  // So that clients hear of it from whichever server they ask.
  const auto all_know = [&] {
    for (const Server* server : servers()) {
      if (!server->alive()) continue;
      if (!says(*server, "CLUSTER INFO", "cluster_state:ok") || !leads_slots(*server, id)) {
        return false;
      }
    }
    return true;
  };
  if (!comes_true(kCompleteWithin, all_know)) {
    return tl::unexpected(fmt::format("{} did not take over", successor.address()));
  }
  std::swap(primaries_.at(shard), replicas_.at(shard));
  return {};
}

Done RedisCluster::move_keys(int slot) {
  return attempt([&] {
    const Server& from = primary(shard_of(slot));
    const Server& to = next(slot);
    tell_redis(to, fmt::format("CLUSTER SETSLOT {} IMPORTING {}", slot, id_of(from)));
    tell_redis(from, fmt::format("CLUSTER SETSLOT {} MIGRATING {}", slot, id_of(to)));
    constexpr int kMostKeys = 100, kMostRounds = 100;
    for (int round = 0; round < kMostRounds; ++round) {
      const std::string keys =
          need(ask_redis(from, fmt::format("CLUSTER GETKEYSINSLOT {} {}", slot, kMostKeys)));
      std::string names;
      // "*2", "$5", "key:1", "$5", "key:2"
      std::string_view rest = keys;
      for (bool is_key = false; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find("\r\n"));
        if (is_key) (names += ' ') += line;
        is_key = !is_key && line.starts_with('$');
        rest.remove_prefix(line.size() + 2);
      }
      if (names.empty()) return;
      tell_redis(from, fmt::format("MIGRATE 127.0.0.1 {} \"\" 0 5000 AUTH2 {} {} KEYS{}", to.port(),
                                   kUser, to.secret(), names));
    }
    throw Failure("the slot's keys do not end");
  });
}

Done RedisCluster::move_slot(int slot) {
  return attempt([&] {
    const std::string id = id_of(next(slot));
    // The new owner first: the old one would otherwise redirect to a server that redirects back.
    for (Server* server : {&next(slot), &primary(shard_of(slot))}) {
      tell_redis(*server, fmt::format("CLUSTER SETSLOT {} NODE {}", slot, id));
    }
    need(await_ok());
  });
}

tl::expected<std::unique_ptr<RedisCluster>, std::string> start_redis_cluster(
    Testbed& testbed, const RedisOptions& options) {
  RedisOptions own = options;
  own.cluster = true;
  std::unique_ptr<RedisCluster> cluster(new RedisCluster);
  return attempt([&] {
    cluster->primaries_.resize(RedisCluster::kShards);
    cluster->replicas_.resize(RedisCluster::kShards);
    in_parallel(2 * RedisCluster::kShards, [&](std::size_t i) {
      auto& group = i % 2 == 0 ? cluster->primaries_ : cluster->replicas_;
      group[i / 2] = need(start_redis(testbed, own));
    });
    cluster->introduce();
    need(cluster->await_ok());
    return std::move(cluster);
  });
}

}  // namespace lockbench::testbed
