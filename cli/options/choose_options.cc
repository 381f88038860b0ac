#include <algorithm>

#include "choose/figure_text.h"
#include "choose/survival.h"
#include "cli/console/text.h"
#include "cli/options/option.h"
#include "cli/options/option_types.h"
#include "hazards/scenario.h"
#include "results/stats/figures.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using choose::Requirements;
using Set = tl::expected<void, std::string>;

/// Calls `take` for each of the words between the commas, until one is refused.
template <class Take>
Set for_each_word(const std::string& text, Take take) {
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    if (auto taken = take(text.substr(from, comma - from)); !taken) return taken;
    from = comma + 1;
  }
  return {};
}

std::vector<std::string_view> known_stores() {
  std::vector<std::string_view> stores;
  for (const auto& catalogue : {all_strategies(), absent_strategies()}) {
    for (const Descriptor* strategy : catalogue) {
      const bool there = std::find(stores.begin(), stores.end(), strategy->backend) != stores.end();
      if (!there && !strategy->traits.one_process && strategy->backend != "local") {
        stores.push_back(strategy->backend);
      }
    }
  }
  return stores;
}

Option stores_option() {
  Option option{.name = "stores", .value_name = "S,...", .repeatable = true};
  option.help = "the stores at hand, with commas in between, such as redis,postgres (any)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    return for_each_word(text, [&](const std::string& word) -> Set {
      const auto known = known_stores();
      if (std::find(known.begin(), known.end(), word) == known.end()) {
        return tl::unexpected(fmt::format("\"{}\" is not one of {}", word, fmt::join(known, ", ")));
      }
      auto& stores = options.choose.requirements.stores;
      if (std::find(stores.begin(), stores.end(), word) == stores.end()) stores.push_back(word);
      return {};
    });
  };
  option.get = [](const RunOptions& options) { return options.choose.requirements.stores; };
  return option;
}

std::vector<std::string_view> fault_names() {
  std::vector<std::string_view> names;
  for (const choose::FaultWord& word : choose::fault_words()) names.push_back(word.word);
  return names;
}

std::string no_such_fault(const std::string& word) {
  std::vector<std::string_view> names = fault_names();
  for (const auto* scenario : hazards::all_scenarios()) names.push_back(scenario->name);
  const std::string suggestion = did_you_mean(word, names);
  return fmt::format("\"{}\" is no fault{}{}", word, suggestion,
                     suggestion.empty() ? fmt::format(": {}, or a scenario of lockbench hazards "
                                                      "(its --help shows them)",
                                                      fmt::join(fault_names(), ", "))
                                        : "");
}

Option survive_option() {
  Option option{.name = "survive", .value_name = "F,...", .repeatable = true};
  option.help = fmt::format(
      "the faults to survive, with commas in between: {}, a scenario of lockbench hazards or a "
      "glob "
      "(none)",
      fmt::join(fault_names(), ", "));
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    return for_each_word(text, [&](const std::string& word) -> Set {
      auto survival = choose::find_survival(word);
      if (!survival) return tl::unexpected(no_such_fault(word));
      auto& survive = options.choose.requirements.survive;
      const bool there = std::any_of(survive.begin(), survive.end(),
                                     [&](const auto& one) { return one.word == word; });
      if (!there) survive.push_back(*std::move(survival));
      return {};
    });
  };
  option.get = [](const RunOptions& options) {
    std::vector<std::string> words;
    for (const auto& one : options.choose.requirements.survive) words.push_back(one.word);
    return words;
  };
  return option;
}

Option work_option(std::string_view name, std::string_view help,
                   std::optional<Duration> Requirements::*place) {
  Option option{.name = name, .value_name = "D", .help = std::string(help)};
  option.set = [=](RunOptions& options, const std::string& text) -> Set {
    const auto duration = parse_duration(text);
    if (!duration) return tl::unexpected(duration.error());
    if (auto allowed = check_range(text, *duration, {1us, 1h}); !allowed) return allowed;
    options.choose.requirements.*place = *duration;
    return {};
  };
  option.get = [=](const RunOptions& options) -> results::OptionValue {
    const auto& work = options.choose.requirements.*place;
    if (!work) return nullptr;
    return seconds(*work);
  };
  return option;
}

Option slo_option() {
  Option option{.name = "slo", .value_name = "EXPR", .repeatable = true};
  option.help = "a figure that must be kept, such as acquire.p99<20ms; repeatable (none)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    auto slo = results::parse_threshold(text);
    if (!slo) return tl::unexpected(slo.error());
    options.choose.requirements.slos.push_back(std::move(*slo));
    return {};
  };
  option.get = [](const RunOptions& options) {
    std::vector<std::string> texts;
    for (const auto& slo : options.choose.requirements.slos) texts.push_back(slo.text);
    return texts;
  };
  return option;
}

Option fencing_option() {
  Option option{.name = "fencing-resource", .value_name = "yes|no"};
  option.help =
      "whether the protected resource can refuse writes with an old fencing number (not known)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    if (text != "yes" && text != "no") {
      return tl::unexpected(fmt::format("\"{}\" is not yes or no", text));
    }
    options.choose.requirements.fencing_resource = text == "yes";
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& fencing = options.choose.requirements.fencing_resource;
    if (!fencing) return nullptr;
    return std::string(*fencing ? "yes" : "no");
  };
  return option;
}

Option rank_option() {
  Option option{.name = "rank-by", .value_name = "FIGURE"};
  option.help = "rank by this figure of a run, such as commands_per_section (what fits)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const std::vector<results::Figure> figures = results::figures(results::Run{});
    std::vector<std::string_view> names;
    names.reserve(figures.size());
    for (const results::Figure& figure : figures) names.push_back(figure.path);
    if (std::find(names.begin(), names.end(), text) == names.end()) {
      return tl::unexpected(
          fmt::format("no such figure \"{}\"{}: a number of a run is wanted, such as acquire.p99",
                      text, did_you_mean(text, names)));
    }
    if (!choose::can_rank(text)) {
      return tl::unexpected(
          fmt::format("it is not said whether more or less of \"{}\" is better; these rank: {}",
                      text, choose::ranking_figures()));
    }
    options.choose.requirements.rank_by = text;
    return {};
  };
  option.get = [](const RunOptions& options) { return options.choose.requirements.rank_by; };
  return option;
}

}  // namespace

std::vector<Option> requirement_options() {
  return {stores_option(),
          survive_option(),
          work_option("work-time-p50", "how long the work under the lock usually takes (not known)",
                      &Requirements::work_p50),
          work_option("work-time-p99", "and at the longest, but for one in a hundred (not known)",
                      &Requirements::work_p99),
          number_option(
              "clients", "N", "how many clients want the lock (not known)", Range<int>{1, 100'000},
              [](auto& o) -> auto& { return o.choose.requirements.clients; }),
          number_option(
              "rate", "R", "sections a second, of all clients together (not known)",
              Range<double>{0.001, 10'000'000},
              [](auto& o) -> auto& { return o.choose.requirements.rate; }),
          slo_option(),
          flag_option(
              "fair", "first come, first served",
              [](auto& o) -> auto& { return o.choose.requirements.fair; }),
          fencing_option(),
          flag_option(
              "reentrant", "a holder can take it again",
              [](auto& o) -> auto& { return o.choose.requirements.reentrant; }),
          flag_option(
              "shared", "several readers can hold it at once",
              [](auto& o) -> auto& { return o.choose.requirements.shared; }),
          rank_option()};
}

}  // namespace lockbench::cli
