#include "strategies/programs/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>

#include "strategies/observer.h"
#include "strategies/programs/client/process.h"
#include "strategies/registry.h"
#include "strategies/store.h"

namespace lockbench::program {
namespace {

using namespace std::string_view_literals;

// For the runtime of a program to start, and its answer to hello.
constexpr Duration kAsk = std::chrono::seconds(20);
// A few echoes a second cost a program nothing, and show when it is busy.
constexpr Duration kBetweenEchoes = std::chrono::milliseconds(250);
constexpr Duration kLatestEcho = std::chrono::seconds(5);

/// Where nobody listens: a program that only says what it is need not reach its store.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNowhere{{
    {"redis", "redis://127.0.0.1:1/0"},
    {"memcached", "memcached://127.0.0.1:1"},
    {"nats", "nats://127.0.0.1:1"},
    {"zookeeper", "zk://127.0.0.1:1"},
    {"etcd", "etcd://127.0.0.1:1"},
    {"postgres", "postgresql://lockbench@127.0.0.1:1/lockbench"},
    {"mysql", "mysql://lockbench@127.0.0.1:1"},
}};

/// Registered clients live as long as the program: descriptors have views of their texts.
struct Registered {
  Client client;
  std::string summary;
};
std::deque<Registered>& registered() {
  static std::deque<Registered> all;
  return all;
}

using Set = tl::expected<void, std::string>;

Set set_expiry(const Json& value, std::string_view store, bool renews, Traits& traits) {
  const bool session = store == "zookeeper" || (store == "etcd" && renews);
  const bool connection = store == "postgres" || store == "mysql";
  std::string word = session ? "session" : "ttl";
  if (value.is_null()) word = connection ? "connection" : word;
  if (value == false) word = connection ? "connection" : "none";
  if (!value.is_null() && !value.is_boolean()) word = value.is_string() ? value : Json("");
  if (word == "ttl" || word == "none") {
    traits.expiry = word == "ttl" ? Expiry::ttl : Expiry::none;
  } else if (word == "session" || word == "connection") {
    traits.expiry = Expiry::session;
    traits.ends_with_connection = word == "connection";
  } else {
    return tl::unexpected<std::string>(
        "expiry is none of true, false, ttl, session, connection, none");
  }
  if (renews && traits.expiry == Expiry::ttl) traits.renews.emplace();
  return {};
}

Set set_waiting(const Json& value, Traits& traits, bool& waits) {
  constexpr std::array kWords{"poll"sv, "backoff"sv, "random"sv, "notify"sv, "queue"sv};
  traits.waiting_choices = {};
  if (value.is_null()) return {};
  const std::string word = value.is_string() ? value.get<std::string>() : "";
  waits = word != "none";
  if (!waits) {
    traits.waiting_choices = {WaitKind::poll, WaitKind::backoff};
    return {};
  }
  const auto* const known = std::ranges::find(kWords, word);
  if (known == kWords.end()) {
    return tl::unexpected(fmt::format("waiting is none of {}, none", fmt::join(kWords, ", ")));
  }
  traits.waiting = {.kind = static_cast<WaitKind>(known - kWords.begin())};
  traits.fair = traits.waiting.kind == WaitKind::queue;
  return {};
}

/// The traits that the program has told; the rest as of its store, or as nobody would object to.
tl::expected<Traits, std::string> traits_of(const Json& about, std::string_view store,
                                            bool& waits) {
  // Its checks of the owner are assumed, so that a play shows where they are missing.
  Traits traits{.release_check = OwnerCheck::atomic, .renew_check = OwnerCheck::atomic};
  traits.ttl_in_seconds = store == "etcd" || store == "memcached";
  Json told = about.value("traits", Json::object());
  if (!told.is_object()) return tl::unexpected<std::string>("traits is no object");
  constexpr std::array kTraits{"fencing"sv, "reentrant"sv, "renews"sv,
                               "quorum"sv,  "expiry"sv,    "waiting"sv};
  for (const auto& [name, value] : told.items()) {
    if (std::ranges::count(kTraits, std::string_view(name)) > 0) continue;
    return tl::unexpected(
        fmt::format("\"{}\" is none of {}", printable(name), fmt::join(kTraits, ", ")));
  }
  std::array<bool, 4> flags{};  // the first of the traits
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string name(kTraits.at(i));
    const Json value = told.value(name, Json());
    if (!value.is_null() && !value.is_boolean()) {
      return tl::unexpected(fmt::format("{} is neither true nor false", name));
    }
    flags.at(i) = value == true;
  }
  traits.fencing = flags[0];
  traits.reentrant = flags[1];
  traits.nodes = flags[3] ? 2 : 1;
  Set set = set_expiry(told.value("expiry", Json()), store, flags[2], traits);
  if (set) set = set_waiting(told.value("waiting", Json()), traits, waits);
  if (!set) return tl::unexpected(set.error());
  return traits;
}

/// Reports how long an empty request takes, as long as the program works.
void echo(Process& process, StrategyObserver& observer, const std::stop_token& stop) {
  Carrier& carrier = Carrier::current();
  // Its start is no round trip.
  if (!process.about(kAsk, stop)) return;
  while (carrier.wait(nullptr, carrier.now() + kBetweenEchoes, stop) != WaitResult::stopped) {
    const TimePoint sent_at = carrier.now();
    Call call(process, {{"do", "echo"}});
    call.await(sent_at + kLatestEcho, stop);
    if (stop.stop_requested() || !call.failure().empty()) return;
    observer.on_echo(carrier.now() - sent_at);
  }
}

}  // namespace

struct Fleet::Member {
  std::unique_ptr<Process> process;
  std::unique_ptr<Task> echo;  ///< ends first
};

Fleet::Fleet() = default;
Fleet::~Fleet() = default;

tl::expected<Process*, std::string> Fleet::process_of(const Client& client, const Context& context,
                                                      Duration ttl) {
  const int carried = context.options.clients_per_process;
  const std::scoped_lock lock(mutex_);
  auto& member = members_[{client.name, context.client / carried}];
  if (member) return member->process.get();
  const auto about = Json::parse(client.about, nullptr, false);
  const std::string store = text_in(about, "store").value_or("");
  const bool quorum = find_strategy(client.name)->traits.nodes > 1;
  if (context.urls.empty()) return tl::unexpected(fmt::format("no server of {} is known", store));
  const Json urls = quorum ? Json(context.urls) : Json(context.urls.front());
  auto process = Process::start({.command = client.command,
                                 .hello = hello_of(carried, {{store, urls}}, ttl),
                                 .own_group = context.services.get<Grouping>().own_group});
  if (!process) return tl::unexpected(process.error());
  auto made = std::make_unique<Member>();
  made->process = *std::move(process);
  StrategyObserver& observer = context.services.get<StrategyObserver>();
  if (observer.wants_echoes()) {
    auto task = Carrier::current().start(
        [process = made->process.get(), &observer](const std::stop_token& stop) {
          echo(*process, observer, stop);
        },
        [](const std::string& /*why*/) {});
    if (!task) return tl::unexpected(task.error());
    made->echo = *std::move(task);
  }
  member = std::move(made);
  return member->process.get();
}

double Fleet::cpu_seconds(const std::function<std::optional<double>(pid_t)>& of_tree) const {
  const std::scoped_lock lock(mutex_);
  double sum = 0;
  for (const auto& [key, member] : members_) {
    if (member && of_tree) sum += of_tree(member->process->pid()).value_or(0);
  }
  return sum;
}

std::size_t Fleet::size() const {
  const std::scoped_lock lock(mutex_);
  return members_.size();
}

tl::expected<Client, std::string> parse_client(const std::string& text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  Client client{.name = {}, .command = text, .about = {}};
  // NODE_ENV=production before a command is no name.
  const std::size_t end = text.find_first_not_of(kAllowed);
  if (end != 0 && end != std::string::npos && text[end] == '=') {
    client.name = text.substr(0, end);
    client.command = text.substr(end + 1);
  }
  if (client.command.find_first_not_of(' ') == std::string::npos ||
      client.command.find('\0') != std::string::npos) {
    return tl::unexpected(
        fmt::format("\"{}\" is neither COMMAND nor NAME=COMMAND", printable(text)));
  }
  if (!client.name.empty()) return client;
  // "python3 clients/python/redis_py.py redis" is redis_py: the first file with an ending, or else
  // the program.
  std::string_view rest = client.command, name;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::string_view file = word.substr(word.rfind('/') + 1);
    const bool ends = file.rfind('.') != std::string_view::npos && file.rfind('.') > 0;
    if (name.empty() || ends) name = file.substr(0, ends ? file.rfind('.') : file.size());
    if (ends) break;
  }
  for (const char c : name) {
    const char low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    client.name += kAllowed.find(low) == std::string_view::npos ? '-' : low;
  }
  return client;
}

Endpoints nowhere() {
  Endpoints all;
  for (const auto& [store, url] : kNowhere) all[std::string(store)] = {std::string(url)};
  return all;
}

tl::expected<Client, std::string> ask(Client client, const Endpoints& given) {
  Json stores = Json::object();
  for (const auto& [store, url] : kNowhere) {
    const auto urls = given.find(store);
    const bool known = urls != given.end() && !urls->second.empty();
    stores[std::string(store)] = known ? urls->second.front() : std::string(url);
  }
  const auto failed = [&](const std::string& why) {
    return tl::unexpected(fmt::format("{}: {}", client.name, why));
  };
  const auto process =
      Process::start({.command = client.command,
                      .hello = hello_of(0, std::move(stores), std::chrono::seconds(10))});
  if (!process) return failed(process.error());
  const auto about = (*process)->about(kAsk);
  if (!about) return failed(about.error());
  // Kept in result files: never with a URL that it was given.
  Json kept = Json::object();
  for (const char* const name : {"name", "version", "store"}) {
    if (const auto text = text_in(*about, name)) kept[name] = (*process)->presentable(*text);
  }
  if (about->contains("traits")) kept["traits"] = about->at("traits");
  client.about = kept.dump(-1, ' ', false, Json::error_handler_t::replace);
  return client;
}

tl::expected<const Descriptor*, std::string> add(const Client& client) {
  const auto wrong = [&](const std::string& why) {
    return tl::unexpected(fmt::format("{}: {}", client.name, why));
  };
  if (const Descriptor* const known = Registration::find(client.name)) {
    const Client* const same = client_of(*known);
    if (same != nullptr && same->command == client.command) return known;
    return wrong("this name is taken: use --client NAME=COMMAND");
  }
  const auto about = Json::parse(client.about, nullptr, false);
  if (!about.is_object()) return wrong("its answer to hello makes no sense");
  const auto store = text_in(about, "store");
  const auto* const known =
      std::ranges::find(kNowhere, store.value_or(""), [](const auto& one) { return one.first; });
  if (known == kNowhere.end()) {
    std::vector<std::string_view> names(kNowhere.size());
    std::ranges::transform(kNowhere, names.begin(), [](const auto& one) { return one.first; });
    return wrong(fmt::format("its answer to hello names no store of {}", fmt::join(names, ", ")));
  }
  bool waits = true;
  auto traits = traits_of(about, known->first, waits);
  if (!traits) return wrong("its answer to hello: " + traits.error());
  Registered& kept = registered().emplace_back();
  kept.client = client;
  kept.client.library = text_in(about, "name").value_or(client.name);
  kept.client.version = text_in(about, "version").value_or("");
  kept.summary =
      fmt::format("{} {}, by a client program", kept.client.library, kept.client.version);
  const bool expires = traits->expiry == Expiry::ttl && !traits->renews;
  const Registration made(with_known_hazards({
      .name = kept.client.name,
      .backend = known->first,
      .summary = kept.summary,
      .program = kept.client.command,
      .source = "the client program",
      .traits = *std::move(traits),
      .make = [&client = kept.client, waits, expires](
                  const Context& context) { return make_lock(client, context, waits, expires); },
  }));
  return Registration::find(client.name);
}

const Client* client_of(const Descriptor& strategy) {
  if (strategy.program.empty()) return nullptr;
  const auto found = std::ranges::find(registered(), strategy.name, [](const Registered& one) {
    return std::string_view(one.client.name);
  });
  return found == registered().end() ? nullptr : &found->client;
}

}  // namespace lockbench::program
