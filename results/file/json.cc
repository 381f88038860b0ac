#include "results/file/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/file/json_document.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kMaxErrorColumns = 240;

std::string dump_compact(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

bool holds_scalars_only(const nlohmann::ordered_json& value) {
  return std::none_of(value.begin(), value.end(),
                      [](const auto& element) { return element.is_structured(); });
}

/// Objects of scalars, arrays of scalars, and arrays of such arrays: a histogram's buckets.
bool fits_one_line(const nlohmann::ordered_json& value) {
  if (!value.is_structured() || holds_scalars_only(value)) {
    return true;
  }
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& element) {
           return element.is_array() && holds_scalars_only(element);
         });
}

/// As deep as the model is, no deeper.
void dump(const nlohmann::ordered_json& value, std::size_t indent, std::string& out) {
  if (fits_one_line(value)) {
    out += dump_compact(value);
    return;
  }
  out += value.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 1, ' ');
    if (value.is_object()) {
      out += dump_compact(key) + ": ";
    }
    dump(member, indent + 1, out);
  }
  out += "\n";
  out.append(indent, ' ');
  out += value.is_array() ? "]" : "}";
}

nlohmann::ordered_json empty_run() { return write_object({.runs = {Run()}})["runs"][0]; }

/// Leaves out the members that the empty object has too.
void leave_out(const nlohmann::ordered_json& empty, nlohmann::ordered_json& object) {
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

}  // namespace

std::string to_json(const Result& result) {
  std::string out;
  dump(write_object(result), 0, out);
  out += "\n";
  return out;
}

std::string to_compact_json(const Result& result) {
  std::string out = "{";
  std::string_view before = "\n";
  nlohmann::ordered_json document = write_object(result);
  document[kCompact] = true;
  const nlohmann::ordered_json empty = empty_run();
  for (auto& run : document["runs"]) leave_out(empty, run);
  for (const auto& [key, member] : document.items()) {
    out += fmt::format("{}{}: ", before, dump_compact(key));
    before = ",\n";
    if (!member.is_array() || member.empty()) {
      out += dump_compact(member);
      continue;
    }
    for (std::size_t i = 0; i < member.size(); ++i) {
      out += (i == 0 ? "[\n " : ",\n ") + dump_compact(member[i]);
    }
    out += "\n]";
  }
  return out + "\n}\n";
}

tl::expected<Result, std::string> from_json(std::string_view text) {
  return read_result(text).map_error(
      [](const std::string& error) { return clip(printable(error), kMaxErrorColumns); });
}

}  // namespace lockbench::results
