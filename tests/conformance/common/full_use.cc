#include "tests/conformance/common/full_use.h"

#include <fstream>
#include <future>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/folders.h"

namespace lockbench::test {
namespace {

/// Run id in the names of keys and shared data.
constexpr std::string_view kRun = "20200101T000000Z-abcdef";

std::string ask_store(const StoreKind& kind, const std::string& url) {
  const auto store = kind.make(url, kPatience);
  if (const auto reached = store->reach({}); !reached) return reached.error().message;
  const auto facts = store->facts();
  return facts ? "" : facts.error().message;
}

std::string remove_all(const StoreKind& kind, const std::string& url, const std::string& key) {
  const auto store = kind.make(url, kPatience);
  if (const auto gone = store->remove_keys({&key, 1}, {}); !gone) return gone.error().message;
  if (kind.listing == Listing::none) return "";
  const std::string prefix = fmt::format("lockbench:{}:{{", kRun);
  if (auto noted = store->begin_keys(prefix, WallTime{}, {}); !noted) return noted.error().message;
  if (auto ended = store->end_keys(prefix, {}); !ended) return ended.error().message;
  if (auto removed = store->remove_old_runs({}); !removed) return removed.error().message;
  const auto gone = store->remove_run(kRun, {});
  return gone ? "" : gone.error().message;
}

/// One of several clients that take the lock repeatedly.
void contend(Client& client, const std::string& key, Duration longest) {
  constexpr int kSections = 5;
  for (int i = 0; i < kSections; ++i) {
    const Lease held = granted(client.acquire(key, longest));
    std::this_thread::yield();  // lets others start waiting
    client.give_back(held);
  }
}

/// Two clients share the lock, which excludes a third.
void share(Client& one, Client& two, Client& alone, const std::string& key) {
  const Lease first = granted(one.share(key)), second = granted(two.share(key));
  if (alone.try_once(key).lease) throw Broken("a third was let in");
  one.give_back(first);
  two.give_back(second);
}

/// Of a control without a lock.
void update(Bench& bench, const std::string& key) {
  const auto client = bench.client();
  client->give_back(granted(client->share(key)));
}

void use_lock(Bench& bench, const std::string& key, Duration longest) {
  const auto holder = bench.client(), other = bench.client(), third = bench.client();
  const Lease held = granted(holder->acquire(key, longest));
  if (bench.descriptor().traits.renewable) {
    const RenewResult renewed = holder->lock().renew(held, kLongTtl);
    if (renewed.outcome == RenewOutcome::failed) throw Broken("renew failed: " + renewed.reason);
  }
  // Two wait: a queue only looks at earlier waiters if there are some.
  const auto wait_in_vain = [&key](Client* client) {
    return client->acquire(key, milliseconds(300));
  };
  std::future<AcquireResult> beside = std::async(std::launch::async, wait_in_vain, third.get());
  for (const AcquireResult& refused : {wait_in_vain(other.get()), beside.get()}) {
    if (refused.outcome != AcquireOutcome::timed_out) {
      throw Broken(unexpected(refused, AcquireOutcome::timed_out));
    }
  }
  std::vector<std::future<void>> contending;
  for (Client* client : {other.get(), third.get()}) {
    contending.push_back(std::async(std::launch::async,
                                    [&key, client, longest] { contend(*client, key, longest); }));
  }
  holder->give_back(held);
  for (std::future<void>& one : contending) one.get();
  if (bench.descriptor().traits.shared) share(*holder, *other, *third, key);
}

}  // namespace

std::string use_fully(const Descriptor& descriptor, const std::vector<std::string>& urls,
                      Duration longest) {
  const StoreKind& kind = *find_store_kind(descriptor.backend);
  const std::string key = fmt::format("lockbench:{}:{{{}}}", kRun, descriptor.name);
  try {
    if (std::string wrong = ask_store(kind, urls.front()); !wrong.empty()) return wrong;
    Bench bench(descriptor, urls, can_notify(descriptor) ? notified() : impatient(descriptor));
    descriptor.traits.updates ? update(bench, key) : use_lock(bench, key, longest);
    return remove_all(kind, urls.front(), key);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

std::vector<std::string> use_all_fully(std::string_view backend, const std::string& url) {
  std::vector<std::string> outcomes;
  for (const Descriptor* strategy : all_strategies()) {
    if (strategy->backend == backend) outcomes.push_back(use_fully(*strategy, {url}));
  }
  return outcomes;
}

std::vector<std::string> documented_rights(
    std::string_view first_line,
    const std::vector<std::pair<std::string_view, std::string>>& words) {
  std::ifstream page(LOCKBENCH_SOURCE_DIR "/docs/operations.md");
  std::vector<std::string> lines;
  std::string before;
  for (std::string line; std::getline(page, line); before = line) {
    const bool begins = lines.empty() && before.starts_with("```") && line.starts_with(first_line);
    if (!begins && (lines.empty() || line == "```")) {
      if (!lines.empty()) break;
      continue;
    }
    for (const auto& [word, other] : words) {
      for (std::size_t at = 0; (at = line.find(word, at)) != std::string::npos;) {
        line.replace(at, word.size(), other);
        at += other.size();
      }
    }
    lines.push_back(line.substr(0, line.find("  # ")));
  }
  if (lines.empty()) throw std::runtime_error("docs/operations.md has no such block");
  return lines;
}

}  // namespace lockbench::test
