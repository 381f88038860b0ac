#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"
#include "tests/support/hostile_server.h"

namespace lockbench::test {

/// How long a client waits for one answer here.
inline constexpr Duration kHostileTimeout = std::chrono::milliseconds(200);

/// One client's life: it acquires a lock, renews and releases it. Expects of each result what the
/// interface says, whatever the server does, and that each ends by itself. `on_grant` is called
/// when the lock was granted.
void live(const Descriptor& strategy, const std::string& url, const std::function<void()>& on_grant,
          Duration timeout = kHostileTimeout);

/// One honest server.
struct Honest {
  MakeSpeaker speaker;
  /// Whether the latest answers by which a lock is granted do grant it.
  std::function<bool(const std::vector<HostileServer::Exchange>&)> has_granted;
  /// Its URL is its address between these.
  std::string_view scheme{}, query{};
};

/// Such lives at servers that are honest but for one misdeed, at each request in turn, and once
/// from `on_from` on for good. Expects that no client believes to have a lock that its server did
/// not grant.
void expect_no_false_grants(const Descriptor& strategy, const std::vector<Misdeed>& misdeeds,
                            const std::function<Honest()>& make, int on_from = 1);

/// All strategies of that store.
std::vector<const Descriptor*> strategies_of(std::string_view backend);

}  // namespace lockbench::test
