#include "strategies/postgres/client/environment.h"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "strategies/postgres/client/endpoint.h"

namespace lockbench::postgres {
namespace {

struct Taken {
  Settings settings;  ///< libpq's defaults as they were, a service's included
  std::vector<std::string> names;
};

/// Those that stand for no setting only say how a server writes and plans. Those that say where
/// service files are stay, for a service that a DSN names.
Taken take() {
  Taken taken;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(PQconndefaults(),
                                                                               PQconninfoFree);
  std::vector<std::string> variables{"PGREQUIRESSL", "PGDATESTYLE", "PGTZ", "PGGEQO"};
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr) taken.settings[option->keyword] = option->val;
    if (option->envvar != nullptr) variables.emplace_back(option->envvar);
  }
  std::ranges::sort(variables);
  for (const std::string& variable : variables) {
    if (std::getenv(variable.c_str()) == nullptr) continue;
    taken.names.push_back(variable);
    unsetenv(variable.c_str());
  }
  return taken;
}

const Taken& environment() {
  static const Taken taken = take();
  return taken;
}

std::string quoted(const std::string& value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

}  // namespace

std::vector<std::string> take_environment() { return environment().names; }

std::string completed(const std::string& dsn) {
  std::optional<Settings> settings = settings_of(dsn);
  if (environment().names.empty() || !settings || settings->contains("service")) return dsn;
  for (const auto& [name, value] : environment().settings) settings->try_emplace(name, value);
  std::string text;
  for (const auto& [name, value] : *settings) {
    text += (text.empty() ? "" : " ") + name + "=" + quoted(value);
  }
  return text;
}

}  // namespace lockbench::postgres
