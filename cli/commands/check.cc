#include <algorithm>

#include "cli/commands/commands.h"
#include "history/checker.h"
#include "history/operation.h"
#include "results/tables/hazards.h"

// Judges a history of operations on locks.

namespace lockbench::cli {
namespace {

using history::History;
using history::Judgement;
using history::Operation;
using history::Outcome;

struct CheckOptions {
  static constexpr std::string_view kCommand = "check";
  std::vector<std::string> files;
  history::Model model;

  void declare(OptionList& options) {
    declare_files(options, files, "one history: FILE.edn (Jepsen) or FILE.jsonl (Porcupine)");
    options.add("model", "NAME", model, parsed(history::parse_model, history::to_string),
                "what the lock promises: mutex, reentrant, shared, semaphore:N, fenced");
  }
};

/// When and how its process sees an operation begin and end. Times count from `origin`.
void tell(std::vector<results::HazardEvent>& events, const History& history, const Operation& one,
          std::int64_t origin) {
  const auto add = [&](std::int64_t at, std::string what) {
    events.push_back({(static_cast<double>(at) - static_cast<double>(origin)) / 1e9,
                      "process " + history.processes.at(static_cast<std::size_t>(one.process)),
                      std::move(what)});
  };
  const std::string mode = is_shared(one.f) ? " in shared mode" : "";
  add(one.begin, (acquires(one.f) ? "asks for the lock" : "starts to release") + mode);
  if (one.outcome == Outcome::info) return;
  const std::string number = one.value < 0 ? "" : fmt::format(", with number {}", one.value);
  add(one.end, acquires(one.f) ? "is granted the lock" + mode + number : "has released the lock");
}

std::vector<results::HazardEvent> timeline(const History& history,
                                           const history::Contradiction& contradiction) {
  std::int64_t origin = history.operations.front().begin;
  for (const Operation& one : history.operations) origin = std::min(origin, one.begin);
  std::vector<results::HazardEvent> events;
  for (const auto place : contradiction.operations) {
    tell(events, history, history.operations[place], origin);
  }
  std::ranges::stable_sort(events, {}, &results::HazardEvent::t);
  return events;
}

std::string to_text(const History& history, const Judgement& judgement, const std::string& model) {
  const auto indefinite =
      std::ranges::count(history.operations, Outcome::info, &Operation::outcome);
  std::string text =
      fmt::format("{} operations ({} indefinite) on {} keys, {} grants, {} of them contended\n",
                  history.operations.size(), indefinite, history.keys.size(), judgement.granted,
                  judgement.contended);
  if (history.ignored > 0) text += fmt::format("{} others ignored\n", history.ignored);
  if (judgement.contradictions == 0) {
    constexpr const char* kUntested = "untested: no grant was contended, so this proves nothing";
    return text + fmt::format("{}: {}\n", model, judgement.contended > 0 ? "explained" : kUntested);
  }
  text += fmt::format("{}: violated: {} operations on {} keys cannot be explained; the first:\n",
                      model, judgement.contradictions, judgement.keys_contradicted);
  const auto& places = judgement.first->operations;
  const auto lines =
      results::each_of(places, [&](auto place) { return history.operations[place].line; });
  const Operation& one = history.operations[places.front()];
  const std::string& key = history.keys.at(static_cast<std::size_t>(one.key));
  text += fmt::format("{} (lines {}): {}\n", key.empty() ? "the lock" : key, fmt::join(lines, ", "),
                      judgement.first->why);
  return text + results::timeline_text(timeline(history, *judgement.first));
}

int check(const CheckOptions& options) {
  if (options.files.size() != 1) {
    throw UsageError("check takes one history: lockbench check FILE");
  }
  const std::string& file = options.files.front();
  const History history = must(history::read(file));
  const auto judged = history::judge(history, options.model);
  if (!judged) throw UsageError("{}:{}", file, judged.error());
  const bool printed = print_text(to_text(history, *judged, to_string(options.model)));
  return exit_code_of({.exclusion_broken = judged->contradictions > 0, .errors = !printed});
}

}  // namespace

Command check_command() {
  return make_command<CheckOptions>(
      {.task = kCompareResults,
       .summary = "Judge a history of lock operations, of lockbench or another harness.",
       .example = "lockbench check history.edn --model mutex"},
      check);
}

}  // namespace lockbench::cli
