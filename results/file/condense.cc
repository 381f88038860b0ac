#include "results/file/condense.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "results/file/json_document.h"
#include "results/file/option_values.h"

namespace lockbench::results {
namespace {

using Document = nlohmann::ordered_json;

/// What tables show of a play's evidence.
constexpr std::array<std::string_view, 3> kTelling{"reason", "recovery_seconds", "unstable"};

/// What ranks and judges a lock.
constexpr std::array<std::string_view, 20> kRanking{"strategy",
                                                    "backend",
                                                    "repetition",
                                                    "load",
                                                    "duration_seconds",
                                                    "sections",
                                                    "sections_per_second",
                                                    "outcomes",
                                                    "leases_lost",
                                                    "acquire",
                                                    "release",
                                                    "awaited_releases",
                                                    "direct_handoffs",
                                                    "overtakings",
                                                    "wait",
                                                    "attempts_per_grant",
                                                    "commands_per_section",
                                                    "fairness",
                                                    "audit",
                                                    "generator"};

bool is_among(std::span<const std::string_view> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// To four significant digits.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  // Divided, not multiplied by the inverse: so that the shortest decimal form has four digits.
  return scale >= 1 ? std::round(value * scale) / scale
                    : std::round(value * scale) * std::round(1 / scale);
}

/// As deep as the model is, no deeper.
void thin_out(Document& value) {
  constexpr std::array<std::string_view, 3> kBulk{"buckets", "series", "timeline"};
  if (value.is_number_float()) value = rounded(value.get<double>());
  if (!value.is_structured()) return;
  for (auto member = value.begin(); member != value.end(); ++member) {
    if (value.is_object() && member->is_array() && is_among(kBulk, member.key())) {
      *member = Document::array();
    } else {
      thin_out(*member);
    }
  }
}

/// Removes the members with such names.
template <class IsUnwanted>
void remove_members(Document& object, IsUnwanted is_unwanted) {
  for (auto member = object.begin(); member != object.end();) {
    member = is_unwanted(member.key()) ? object.erase(member) : std::next(member);
  }
}

/// Leaves out the members that the empty object has too.
void leave_out(const Document& empty, Document& object) {
  for (auto member = object.begin(); member != object.end();) {
    const auto other = empty.find(member.key());
    if (other != empty.end() && *other == *member) {
      member = object.erase(member);
      continue;
    }
    if (other != empty.end() && member->is_object() && other->is_object()) {
      leave_out(*other, *member);
    }
    ++member;
  }
}

Document condensed_document(const Result& result) {
  Document document = write_object(result);
  if (document.contains("hazards")) {
    for (Document& play : document["hazards"]) {
      remove_members(play["evidence"], [](const auto& name) { return !is_among(kTelling, name); });
    }
  }
  // Readers of a reference do not need the paths it was written to. The rest of the workload stays
  // as it was asked for.
  remove_members(document["workload"], is_of_output);
  for (auto member = document.begin(); member != document.end(); ++member) {
    if (member.key() != "workload") thin_out(*member);
  }
  const Document empty = write_object({.runs = {Run()}})["runs"][0];
  for (Document& run : document["runs"]) {
    for (const std::string name : {"commands", "schedule_lag", "turnaround"}) run.erase(name);
    run["fairness"].erase(std::string("per_client"));
    if (run["repetition"].get<int>() > 1) {
      remove_members(run, [](const auto& name) { return !is_among(kRanking, name); });
    }
    leave_out(empty, run);
  }
  document[kCompact] = true;
  return document;
}

}  // namespace

std::string condensed(const Result& result) {
  const Document document = condensed_document(result);
  std::string out = "{";
  std::string_view before = "\n";
  for (const auto& [key, member] : document.items()) {
    out += fmt::format("{}{}: ", before, on_one_line(key));
    before = ",\n";
    if (!member.is_array() || member.empty()) {
      out += on_one_line(member);
      continue;
    }
    for (std::size_t i = 0; i < member.size(); ++i) {
      out += (i == 0 ? "[\n " : ",\n ") + on_one_line(member[i]);
    }
    out += "\n]";
  }
  return out + "\n}\n";
}

}  // namespace lockbench::results
