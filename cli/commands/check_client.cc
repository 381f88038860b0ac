#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "strategies/programs/client/process.h"
#include "strategies/programs/program.h"
#include "strategies/store.h"
#include "strategies/url.h"

// Whether a client program keeps the protocol of docs/your-lock.md.

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using program::Call;
using program::flag_in;
using Message = program::Json;
using program::number_in;
using program::Process;
using program::text_in;

struct CheckClientOptions {
  static constexpr std::string_view kCommand = "check-client";
  std::vector<std::string> commands;
  ServerUrls servers;
  OutputOptions output;

  void declare(OptionList& options) {
    Option& command = options.add("command", "COMMAND", commands, any_text(),
                                  "the client program, such as 'node my_lock.mjs'", "");
    command.positional = true;
    command.comma_separated = command.in_file = false;
    declare_servers(options, servers);
    options.only({"quiet"}, [&] { output.declare(options); });
  }
};

/// A promise of the protocol, and how the program kept it.
struct Promise {
  enum class State { kept, broken, not_asked };
  std::string name, text;
  State state = State::not_asked;
  std::string why{};  ///< it is broken, or was not asked
  std::vector<std::string> exchange{};
};

/// Ends a check: the promise is broken, or cannot be asked of this program.
struct Ended {
  Promise::State state;
  std::string why;
};
[[noreturn]] void not_asked(std::string why) {
  throw Ended{Promise::State::not_asked, std::move(why)};
}
void expect(bool kept, const std::string& why) {
  if (!kept) throw Ended{Promise::State::broken, why};
}

std::string text_of(const Message& json) {
  return json.dump(-1, ' ', false, Message::error_handler_t::replace);
}

/// Who must be asked.
enum class If { any, waits, expires, renewable, renews };

/// A promise as a conversation. Its steps: `0:take=acquired` (client 0 does this, and that comes),
/// `1:end!acquired` (that must not come), `ms200` and `ttl1.5` (a pause), `took>400` (the latest
/// answer, in ms). A client can `take` (and wait a little), `try`, `short` (take for one TTL),
/// `wait800` (for so many ms), `begin3000` and `end` (the same in two steps), `cancel` what it
/// began, `renew4` (for so many TTLs), and whatever the protocol calls release, held, close, echo.
struct Talk {
  const char *name, *text, *steps;
  If asked = If::any;
};

constexpr std::array kTalks{
    Talk{"acquire", "A free lock is acquired", "0:take=acquired"},
    Talk{"release", "Its holder releases it", "0:take=acquired 0:release=released"},
    Talk{"acquire-again", "After that it is free, for this client and for others",
         "0:take=acquired 0:release=released 0:take=acquired 0:release=released 1:take=acquired"},
    Talk{"other-keys", "A client can hold several locks, each by its key",
         "0:take=acquired 0:take@more=acquired 0:release@more=released 1:try=taken"},
    Talk{"taken", "A taken lock is answered at once if the request does not wait",
         "0:take=acquired 1:try=taken took<3000"},
    Talk{"waits", "A request waits for wait_ms, and then answers `taken`",
         "0:take=acquired 1:wait800=taken took>400 took<4000", If::waits},
    Talk{"served", "A client that waits gets the lock after its release",
         "0:take=acquired 1:begin10000 ms200 0:release=released 1:end=acquired", If::waits},
    Talk{"overlap", "While a client waits, others are served",
         "0:take=acquired 1:begin3000 ms100 2:echo took<2000 2:try@other=acquired took<2000 "
         "0:release=released 1:end=acquired",
         If::waits},
    Talk{"excludes", "While a client holds the lock, no other gets it",
         "0:take=acquired 1:try=taken 2:try=taken 3:try=taken 4:try=taken 5:try=taken"},
    Talk{"strangers-release", "A client that does not hold the lock does not release it",
         "0:take=acquired 1:release!released 2:try=taken"},
    Talk{"release-twice", "A second release finds nothing to release",
         "0:take=acquired 0:release=released 0:release=not_held"},
    Talk{"spent-release", "Nor does it release the next holder's lock",
         "0:take=acquired 0:release=released 1:take=acquired 0:release!released 2:try=taken"},
    Talk{"held", "`held` is true for a holder, and false after its release",
         "0:take=acquired 0:held=true 0:release=released 0:held=false"},
    Talk{"held-by-others", "`held` is false for other clients", "0:take=acquired 1:held=false"},
    Talk{"renew", "A renewal keeps the lock for its TTL from then on",
         "0:short=acquired 0:renew4=renewed 1:try=taken ttl1.5 1:try=taken", If::renewable},
    Talk{"renew-lost", "A renewal of a lock that is not held does not succeed", "0:renew1!renewed",
         If::renewable},
    Talk{"expiry", "Its trait `expiry`: a lock that nobody renews ends after its TTL",
         "0:short=acquired 1:try=taken ttl1.5 1:wait2000=acquired", If::expires},
    Talk{"late-release", "A release after that does not free the next holder's lock",
         "0:short=acquired ttl1.5 1:wait2000=acquired 0:release!released 2:try=taken", If::expires},
    Talk{"renews", "Its trait `renews`: a lock outlasts its TTL until its release",
         "0:short=acquired ttl2.5 1:try=taken 0:release=released", If::renews},
    Talk{"no-renewal-afterwards", "Once it is released, nothing renews it",
         "0:short=acquired 0:release=released ttl1 1:take=acquired", If::renews},
    Talk{"cancel", "It answers cancel, and the cancelled request at the latest when its wait ends",
         "0:take=acquired 1:begin3000 ms100 1:cancel 1:end!acquired", If::waits},
    Talk{"cancel-leaves-nothing", "After a cancelled wait the lock is free once it is released",
         "0:take=acquired 1:begin1000 ms100 1:cancel 1:end!acquired 0:release=released "
         "2:wait1000=acquired",
         If::waits},
    Talk{"close", "close ends a client's connections; the process goes on",
         "3:take=acquired 3:release=released 3:close 7:close 0:echo"},
};

/// Speaks to one process, and to another one after it has failed.
class ClientCheck {
 public:
  ClientCheck(const program::Client& client, const Descriptor& strategy, Message stores,
              std::string prefix, std::set<std::string>& keys, std::stop_token stop)
      : client_(client),
        traits_(strategy.traits),
        about_(Message::parse(client.about)),
        stores_(std::move(stores)),
        prefix_(std::move(prefix)),
        keys_(keys),
        stop_(std::move(stop)),
        ttl_(traits_.ttl_in_seconds ? 2s : 1s) {
    const Message traits = about_.value("traits", Message::object());
    waits_ = traits.value("waiting", Message()) != "none";
  }

  /// A stop ends it early.
  std::vector<Promise> run() {
    process_ = start(kClients, stores_);
    promise("hello", "It answers hello, each time in the same way", [&] {
      const Message about = hello(*process_);
      say("came " + text_of(about));
      expect(about.value("store", Message()) == about_["store"], "it names another store now");
    });
    promise("name", "Its answer to hello has the library's name and version", [&] {
      expect(text_in(about_, "name").has_value(), "there is no text `name`");
      expect(text_in(about_, "version").has_value(), "there is no text `version`");
    });
    check_requests();
    for (const Talk& talk : kTalks) {
      promise(talk.name, talk.text, [&] {
        if (const std::string why = why_not(talk.asked); !why.empty()) not_asked(why);
        converse(talk.steps);
      });
    }
    check_grants();
    check_other_processes();
    check_ends();
    return std::move(promises_);
  }

 private:
  static constexpr int kClients = 8;
  static constexpr Duration kLong = 20s;

  struct Asked {
    std::unique_ptr<Call> call;
    TimePoint at;
    Duration within{};
  };

  /// `ask` throws Ended.
  void promise(std::string name, std::string text, const std::function<void()>& ask) {
    if (stop_.stop_requested()) return;
    Promise one{.name = std::move(name), .text = std::move(text)};
    key_ = fmt::format("{}{{{}}}", prefix_, promises_.size());
    try {
      ask();
      one.state = Promise::State::kept;
    } catch (const Ended& ended) {
      one.state = ended.state;
      one.why = ended.why;
    }
    begun_.clear();
    one.exchange = std::exchange(said_, {});
    promises_.push_back(std::move(one));
    // The promises that follow are not broken by this one.
    const bool failed = promises_.back().state == Promise::State::broken &&
                        !Call(*process_, {{"do", "echo"}}).sent();
    if (failed) process_ = start(kClients, stores_);
  }

  std::string why_not(If asked) const {
    const bool ttl = traits_.expiry == Expiry::ttl;
    if (asked == If::waits && !waits_) return "the library does not wait: lockbench asks again";
    if (asked == If::renewable && !ttl) return "its locks end with a session, or never";
    if (asked == If::expires && (!ttl || traits_.renews))
      return "its locks do not expire, or it renews them";
    if (asked == If::renews && !traits_.renews) return "it does not say that it renews";
    return "";
  }

  std::unique_ptr<Process> start(int clients, const Message& stores) const {
    return must(Process::start({.command = client_.command,
                                .hello = program::hello_of(clients, stores, ttl_)}),
                client_.name);
  }
  void say(const std::string& what) { said_.push_back(process_->presentable(what)); }
  void pause(Duration time) {
    say("waited " + format_duration(time));
    Carrier::current().wait(nullptr, BootClock::now() + time, stop_);
  }

  Asked begin(Process& process, Message request, Duration within = 5s) {
    say("sent " + text_of(request));
    auto call = std::make_unique<Call>(process, std::move(request));
    return {std::move(call), BootClock::now(), within};
  }
  Message end(const Asked& asked) {
    asked.call->await(asked.at + asked.within, stop_);
    if (stop_.stop_requested()) not_asked("interrupted");
    const Message* const answer = asked.call->answer();
    const std::string failure = asked.call->failure();
    if (answer == nullptr) {
      throw Ended{Promise::State::broken,
                  failure.empty() ? "no answer within " + format_duration(asked.within) : failure};
    }
    took_ = BootClock::now() - asked.at;
    say(fmt::format("came {} after {} ms", text_of(*answer), took_ / 1ms));
    return *answer;
  }
  Message ask(Message request) { return end(begin(*process_, std::move(request))); }

  Message acquire(int client, Duration wait, const std::string& key, Duration ttl) {
    keys_.insert(key);
    return {{"do", "acquire"},
            {"client", client},
            {"key", key},
            {"ttl_ms", ceil_milliseconds(ttl)},
            {"wait_ms", waits_ ? ceil_milliseconds(wait) : 0}};
  }

  void converse(std::string_view steps) {
    while (!steps.empty()) {
      std::string_view word = steps;
      steps = cut_at(word, ' ');
      step(std::string(word));
    }
  }

  void step(const std::string& step) {
    if (step.starts_with("ms")) return pause(std::chrono::milliseconds(std::stoi(step.substr(2))));
    if (step.starts_with("ttl")) {
      return pause(std::chrono::duration_cast<Duration>(ttl_ * std::stod(step.substr(3))));
    }
    if (step.starts_with("took")) {
      const auto bound = std::chrono::milliseconds(std::stoi(step.substr(5)));
      if (step[4] == '<') return expect(took_ < bound, "the answer took too long");
      return expect(took_ > bound, "it did not wait");
    }
    const std::size_t judged = std::min(step.find_first_of("=!"), step.size());
    std::string what = step.substr(2, judged - 2), key = key_;
    if (const std::size_t at = what.find('@'); at != std::string::npos) {
      key += what.substr(at);
      what.resize(at);
    }
    const std::size_t digits = std::min(what.find_first_of("0123456789"), what.size());
    const int number = digits < what.size() ? std::stoi(what.substr(digits)) : 0;
    what.resize(digits);
    const std::string came = outcome_of(step[0] - '0', what, number, key);
    if (judged == step.size()) return;
    const bool same = came == step.substr(judged + 1);
    expect(same == (step[judged] == '='),
           fmt::format("{} {} of client {}: {}", what, same ? "must not be" : "came", step[0],
                       came.empty() ? "no outcome" : came));
  }

  std::string outcome_of(int client, const std::string& what, int number, const std::string& key) {
    const auto wait = std::chrono::milliseconds(number);
    if (what == "take" || what == "try" || what == "short" || what == "wait" || what == "begin") {
      const Duration longest = what == "try" ? 0s : number > 0 ? Duration(wait) : 2s;
      const Duration ttl = what == "short" ? ttl_ : kLong;
      Asked asked = begin(*process_, acquire(client, longest, key, ttl), longest + 5s);
      if (what != "begin") return text_in(end(asked), "outcome").value_or("");
      begun_[client] = std::move(asked);
      return "";
    }
    if (what == "end") return text_in(end(begun_.at(client)), "outcome").value_or("");
    if (what == "cancel") {
      ask({{"do", "cancel"}, {"of", begun_.at(client).call->id()}});
      return "";
    }
    Message request = {{"do", what}, {"client", client}, {"key", key}};
    if (what == "renew") request["ttl_ms"] = ceil_milliseconds(number * ttl_);
    const Message answer = ask(request);
    const std::string outcome = text_in(answer, "outcome").value_or("");
    if (outcome == "unsupported" && (what == "renew" || what == "held")) {
      not_asked(fmt::format("the library does not support {}", what));
    }
    const auto held = flag_in(answer, "held");
    return held ? (*held ? "true" : "false") : outcome;
  }

  void check_requests() {
    promise("echo", "It answers echo", [&] { ask({{"do", "echo"}}); });
    promise("burst", "It answers 200 requests that come at once, each by its id", [&] {
      constexpr int kRequests = 200;
      std::vector<Asked> all;
      all.reserve(kRequests);
      for (int i = 0; i < kRequests; ++i) all.push_back(begin(*process_, {{"do", "echo"}}));
      for (const Asked& one : all) end(one);
    });
    promise("unknown-request", "It answers an unknown request, and goes on", [&] {
      ask({{"do", "what-is-this"}, {"client", 0}});
      ask({{"do", "echo"}});
    });
    promise("unknown-member", "It ignores a member that it does not know", [&] {
      Message request = acquire(0, 0s, key_, kLong);
      request["later-version"] = Message::array({1, 2});
      expect(text_in(ask(request), "outcome") == "acquired", "a free lock was not acquired");
    });
    promise("long-keys", "A key may be long and have spaces, slashes and letters of any language",
            [&] {
              key_ += " ü/" + std::string(150, 'x');
              converse("0:take=acquired 1:try=taken 0:release=released");
            });
    promise("cancel-unknown", "It answers a cancel of a request that has ended", [&] {
      ask({{"do", "cancel"}, {"of", 1}});
    });
  }

  void check_grants() {
    promise("validity", "valid_ms, if given, is not longer than the TTL", [&] {
      const auto valid = number_in(ask(acquire(0, 2s, key_, 5s)), "valid_ms");
      if (!valid) not_asked("it does not say how long a grant is valid");
      expect(*valid > 0 && *valid <= 5000, "it is not between 0 and the TTL");
    });
    promise("fencing", "Fencing numbers grow from grant to grant", [&] {
      const Message one = ask(acquire(0, 2s, key_, kLong));
      converse("0:release=released");
      const Message other = ask(acquire(1, 2s, key_, kLong));
      if (!traits_.fencing && !one.contains("fencing")) not_asked("it has no fencing numbers");
      const auto first = number_in(one, "fencing"), second = number_in(other, "fencing");
      expect(first && second, "a grant has no `fencing`, though the trait says so");
      expect(*second > *first, "the second number is not above the first");
    });
    promise("reentry", "Its trait `reentrant`: whether a holder can acquire again", [&] {
      converse(traits_.reentrant ? "0:take=acquired 0:try=acquired"
                                 : "0:take=acquired 0:try!acquired");
    });
  }

  Message hello(Process& process) {
    auto about = process.about(20s, stop_);
    if (stop_.stop_requested()) not_asked("interrupted");
    expect(about.has_value(), about ? "" : about.error());
    return *std::move(about);
  }

  /// The outcome of a request to a process of its own, which is killed then.
  std::string outcome_of_another(const Message& stores, Message request) {
    const auto other = start(1, stores);
    hello(*other);
    const Asked asked = begin(*other, std::move(request), 15s);
    return text_in(end(asked), "outcome").value_or("");
  }

  void check_other_processes() {
    promise("other-process", "A client of another process does not get a taken lock either", [&] {
      converse("0:take=acquired");
      expect(outcome_of_another(stores_, acquire(0, 0s, key_, kLong)) == "taken",
             "the other process does not find it taken");
    });
    promise("dead-holder", "Its trait `expiry`: the lock of a dead client becomes free", [&] {
      if (traits_.expiry == Expiry::none) not_asked("its locks never end by themselves");
      expect(outcome_of_another(stores_, acquire(0, 0s, key_, ttl_)) == "acquired",
             "a free lock was not acquired");
      say("killed the process");
      const TimePoint until = BootClock::now() + 15s;
      Message answer;
      do {
        pause(500ms);
        answer = ask(acquire(0, 0s, key_, ttl_));
      } while (text_in(answer, "outcome") == "taken" && BootClock::now() < until);
      expect(text_in(answer, "outcome") == "acquired", "it is not free after 15 s");
    });
    promise("unreachable", "Without its store nothing is granted, and it says so in time", [&] {
      Message nowhere = Message::object();
      for (const auto& [store, urls] : program::nowhere()) {
        nowhere[store] = traits_.nodes > 1 ? Message(urls) : Message(urls.front());
      }
      expect(outcome_of_another(nowhere, acquire(0, 0s, key_, kLong)) == "failed",
             "the answer is not `failed`");
    });
  }

  void check_ends() {
    promise("stdin", "It ends when its stdin ends", [&] {
      process_->close_input();
      for (int look = 0; look < 100 && !process_->ended(); ++look) {
        Carrier::current().wait(nullptr, BootClock::now() + 50ms, stop_);
      }
      if (stop_.stop_requested()) not_asked("interrupted");
      expect(process_->ended(), "it still runs after 5 s");
    });
  }

  const program::Client& client_;
  const Traits& traits_;
  const Message about_, stores_;
  const std::string prefix_;
  std::set<std::string>& keys_;  ///< of all locks that it asked for
  const std::stop_token stop_;
  const Duration ttl_;
  bool waits_ = true;
  std::unique_ptr<Process> process_;
  std::string key_;  ///< of the present promise
  std::map<int, Asked> begun_;
  Duration took_{};  ///< the latest answer
  std::vector<std::string> said_;
  std::vector<Promise> promises_;
};

constexpr std::string_view word_of(Promise::State state) {
  return state == Promise::State::kept ? "kept" : state == Promise::State::broken ? "BROKEN" : "–";
}

std::string to_text(const std::vector<Promise>& promises, const program::Client& client) {
  std::string text;
  const auto of = [&](Promise::State state) {
    return std::ranges::count(promises, state, &Promise::state);
  };
  for (const Promise& one : promises) {
    text += fmt::format("{:<7} {:<22} {}{}{}\n", word_of(one.state), one.name, one.text,
                        one.why.empty() ? "" : ": ", one.why);
    if (one.state != Promise::State::broken) continue;
    // A burst has hundreds of lines; the last ones tell.
    constexpr std::size_t kShown = 12;
    const std::size_t first = one.exchange.size() > kShown ? one.exchange.size() - kShown : 0;
    for (std::size_t i = first; i < one.exchange.size(); ++i) {
      text += fmt::format("          {}\n", one.exchange[i]);
    }
  }
  text += fmt::format("\n{} {}: {} promises kept, {} broken, {} not asked\n", client.library,
                      client.version, of(Promise::State::kept), of(Promise::State::broken),
                      of(Promise::State::not_asked));
  if (of(Promise::State::broken) > 0) return text;
  return text + fmt::format(
                    "Next: lockbench hazards --quick --client '{0}'\n"
                    "      lockbench run --client '{0}' --clients 8 --hold 1ms\n",
                    client.command);
}

/// Removes what is left on the user's servers, with keys of the library's own where they can be
/// found. False if something may be left.
bool remove_keys(const std::string& id, const std::set<std::string>& keys,
                 const std::vector<std::string>& urls, const Descriptor& strategy,
                 Console& console) {
  const std::vector<std::string> all(keys.begin(), keys.end());
  const StoreKind& kind = *find_store_kind(strategy.backend);
  bool complete = true;
  for (const std::string& url : urls) {
    const auto store = kind.make(url, 3s);
    const auto removed =
        kind.listing == Listing::none ? store->remove_keys(all, {}) : store->remove_run(id, {});
    if (removed) continue;
    complete = false;
    console.warn(fmt::format("locks may be left under lockbench:{}: {}", id,
                             presentable(removed.error().message)));
  }
  return complete;
}

int check_client(const CheckClientOptions& options) {
  if (options.commands.size() != 1) {
    throw UsageError("check-client takes one program: lockbench check-client 'node my_lock.mjs'");
  }
  std::vector<std::string> names;
  take_clients(options.commands, options.servers, names);
  const Descriptor& strategy = *find_strategy(names.front());
  const program::Client& client = *program::client_of(strategy);
  Session session(options.output, false, "stopping");
  const auto drop = [](const auto& /*concerns*/,
                       std::string_view reason) -> tl::expected<void, std::string> {
    return tl::unexpected(std::string(reason));
  };
  auto deployed = deployment::deploy({.given = options.servers, .clients = 32}, {&strategy}, drop,
                                     session.stop());
  if (session.stopped()) return exit_code::kInterrupted;
  const auto servers = must(std::move(deployed));
  const auto urls = urls_of(strategy, servers.endpoints);
  const Message stores = {{std::string(strategy.backend),
                           strategy.traits.nodes > 1 ? Message(urls) : Message(urls.front())}};
  const std::string id = begin_result(options.output).id;
  session.console().note(
      fmt::format("checking {} {} (run {})", client.library, client.version, id));
  const std::string prefix = fmt::format("lockbench:{}:", id);
  std::set<std::string> keys;
  const auto promises = ClientCheck(client, strategy, stores, prefix, keys, session.stop()).run();
  const auto given = options.servers.find(strategy.backend);
  const bool cleaned = given == options.servers.end() ||
                       remove_keys(id, keys, given->second, strategy, session.console());
  const bool broken = std::ranges::count(promises, Promise::State::broken, &Promise::state) > 0;
  const bool printed = print_text(to_text(promises, client));
  return exit_code_of({.interrupted = session.stopped(),
                       .exclusion_broken = broken,
                       .errors = !printed || !cleaned});
}

}  // namespace

Command check_client_command() {
  return make_command<CheckClientOptions>(
      {.task = kDecide,
       .summary = "Check that a client program keeps the protocol of docs/your-lock.md.",
       .example = "lockbench check-client 'node my_lock.mjs'"},
      check_client);
}

}  // namespace lockbench::cli
