#include "results/file/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "results/file/fields.h"
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

/// The member that a compact document has.
constexpr const char* kCompact = "compact";

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

/// Adds the members that were left out.
void fill_in(const nlohmann::json& empty, nlohmann::json& object) {
  for (const auto& [key, value] : empty.items()) {
    const auto member = object.find(key);
    if (member == object.end()) {
      object[key] = value;
    } else if (member->is_object() && value.is_object()) {
      fill_in(value, *member);
    }
  }
}

void fill_in_runs(nlohmann::json& document) {
  // Parsed, as the document is: its numbers have the same types then.
  const auto empty = nlohmann::json::parse(empty_run().dump());
  const auto runs = document.find("runs");
  if (runs == document.end() || !runs->is_array()) return;
  for (nlohmann::json& run : *runs) {
    if (run.is_object()) fill_in(empty, run);
  }
}

/// Looked at before parsing, so that hostile nesting costs nothing.
bool nested_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxResultDepth) {
        return true;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

tl::expected<nlohmann::json, std::string> parse(std::string_view text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view message = error.what();
    message.remove_prefix(std::min(message.size(), message.find("] ") + 2));
    return tl::unexpected(fmt::format("not JSON: {}", message));
  }
}

tl::expected<Result, std::string> read(std::string_view text) {
  if (text.size() > kMaxResultBytes) {
    return tl::unexpected(fmt::format("too large for a result: {} bytes, at most {} are read",
                                      text.size(), kMaxResultBytes));
  }
  if (nested_too_deep(text)) {
    return tl::unexpected(
        fmt::format("nested too deep for a result: more than {} levels", kMaxResultDepth));
  }
  auto document = parse(text);
  if (!document) {
    return tl::unexpected(std::move(document.error()));
  }
  if (!document->is_object() || !document->contains("schema")) {
    return tl::unexpected(
        fmt::format("not a result of lockbench: there is no \"schema\": \"{}\"", kSchema));
  }
  if (const auto& schema = document->at("schema"); schema != kSchema && schema != kSchemaBefore) {
    return tl::unexpected(
        fmt::format("schema {} is not one that can be read here: \"{}\" and \"{}\" are",
                    clip(schema.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 60),
                    kSchema, kSchemaBefore));
  }
  if (const auto compact = document->find(kCompact);
      compact != document->end() && *compact == true) {
    fill_in_runs(*document);
  }
  return read_result(*document);
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
  return read(text).map_error(
      [](const std::string& error) { return clip(printable(error), kMaxErrorColumns); });
}

}  // namespace lockbench::results
