#include "results/file/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/file/json_document.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kMaxErrorColumns = 240;

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
    out += on_one_line(value);
    return;
  }
  out += value.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 1, ' ');
    if (value.is_object()) {
      out += on_one_line(key) + ": ";
    }
    dump(member, indent + 1, out);
  }
  out += "\n";
  out.append(indent, ' ');
  out += value.is_array() ? "]" : "}";
}

}  // namespace

std::string on_one_line(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_json(const Result& result) {
  std::string out;
  dump(write_object(result), 0, out);
  out += "\n";
  return out;
}

tl::expected<Result, std::string> from_json(std::string_view text) {
  return read_result(text).map_error(
      [](const std::string& error) { return clip(printable(error), kMaxErrorColumns); });
}

}  // namespace lockbench::results
