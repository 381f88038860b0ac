#include "cli/commands/fault_servers.h"

#include <algorithm>

namespace lockbench::cli {
namespace {

using deployment::each;
using deployment::PrivateStore;
using loadgen::FaultKind;

/// The servers that the fault concerns: of several nodes the last ones, else all that are the
/// store.
PrivateStore::Servers struck(const PrivateStore& store, const loadgen::Fault& fault) {
  if (fault.kind != FaultKind::node_kill && fault.kind != FaultKind::node_freeze) {
    return store.whole_store();
  }
  const PrivateStore::Servers all = store.servers();
  const auto few = std::min(all.size(), static_cast<std::size_t>(fault.nodes));
  return {all.end() - static_cast<std::ptrdiff_t>(few), all.end()};
}

}  // namespace

template <class Work>
tl::expected<void, std::string> FaultServers::attempt(const Descriptor& strategy, Work work) {
  try {
    work(*deployment_.stores.at(server_set(strategy)));
    return {};
  } catch (const std::exception& failure) {
    failed_ = true;
    return tl::unexpected<std::string>(failure.what());
  }
}

tl::expected<void, std::string> FaultServers::inject(const Descriptor& strategy,
                                                     const loadgen::Fault& fault) {
  return attempt(strategy, [&](PrivateStore& store) {
    switch (fault.kind) {
      case FaultKind::store_kill:
      case FaultKind::node_kill:
        return each(struck(store, fault), [](auto& server) { return server.kill_hard(); });
      case FaultKind::store_freeze:
      case FaultKind::node_freeze:
        return each(struck(store, fault), [](auto& server) { return server.freeze(); });
      case FaultKind::failover:
        return store.kill_leader();
      case FaultKind::partition:
        for (const auto& line : store.lines()) {
          line->hold({.new_ones = false, .share = fault.share});
          // A client that is cut off and reconnects stays cut off.
          line->hold({.open = false});
        }
        return;
      case FaultKind::delay:
        for (const auto& line : store.lines())
          line->delay(deployment::each_way(rtt_ + fault.delay));
        return;
    }
  });
}

tl::expected<void, std::string> FaultServers::heal(const Descriptor& strategy,
                                                   const loadgen::Fault& fault) {
  return attempt(strategy, [&](PrivateStore& store) {
    switch (fault.kind) {
      case FaultKind::store_kill:
      case FaultKind::node_kill:
        each(struck(store, fault), [](auto& server) { return server.restart(true); });
        return store.settle();
      case FaultKind::store_freeze:
      case FaultKind::node_freeze:
        return each(struck(store, fault), [](auto& server) { return server.thaw(); });
      case FaultKind::failover:
        return store.replace_leader();
      case FaultKind::partition:
      case FaultKind::delay:
        for (const auto& line : store.lines()) line->heal();
        return;
    }
  });
}

}  // namespace lockbench::cli
