#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/descriptor.h"
#include "tests/support/hostile_server.h"

namespace lockbench::test {

/// How long a client waits for one answer in these tests.
inline constexpr Duration kHostileTimeout = std::chrono::milliseconds(200);

/// The life of one client: acquires, renews and releases a lock. Expects every call to return, with
/// a result that the interface allows, no matter what the server does. Calls `on_grant` if the lock
/// was granted.
void live(const Descriptor& strategy, const std::string& url, const std::function<void()>& on_grant,
          Duration timeout = kHostileTimeout);

/// One honest server.
struct Honest {
  MakeSpeaker speaker;
  /// Whether these answers grant the lock.
  std::function<bool(const std::vector<HostileServer::Exchange>&)> has_granted;
  /// Before and after the address in its URL.
  std::string_view scheme{}, query{};
};

/// Plays such lives against servers that are honest except for one misdeed: at each request in
/// turn, and once at all requests from `on_from` on. Expects that no client believes in a lock that
/// its server did not grant.
void expect_no_false_grants(const Descriptor& strategy, const std::vector<Misdeed>& misdeeds,
                            const std::function<Honest()>& make, int on_from = 1);

/// All strategies of the store.
std::vector<const Descriptor*> strategies_of(std::string_view backend);

}  // namespace lockbench::test
