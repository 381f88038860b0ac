#pragma once

#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "strategies/programs/client/process.h"
#include "strategies/programs/program.h"

namespace lockbench::cli {

/// A promise of the protocol, and how the program kept it.
struct Promise {
  enum class State { kept, broken, not_asked };
  std::string name, text;
  State state = State::not_asked;
  std::string why{};  ///< it is broken, or was not asked
  std::vector<std::string> exchange{};
};

/// Asks the program for each promise of docs/your-lock.md. `stores`: what `hello` tells it; keys
/// begin with `prefix` and are added to `keys`. A stop ends it early.
std::vector<Promise> ask_promises(const program::Client& client, const Descriptor& strategy,
                                  const program::Json& stores, const std::string& prefix,
                                  std::set<std::string>& keys, const std::stop_token& stop);

}  // namespace lockbench::cli
