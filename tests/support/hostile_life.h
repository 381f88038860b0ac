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

/// How many requests such a life takes at a server that is honest. Expects that it gets its lock.
int requests_at(const HostileServer& honest, const Descriptor& strategy, const std::string& url);

/// All strategies of that store.
std::vector<const Descriptor*> strategies_of(std::string_view backend);

}  // namespace lockbench::test
