#include <fmt/format.h>

#include "results/tables/formats.h"

namespace lockbench::results {
namespace {

/// Quoted where it needs to be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

struct CsvText {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return field(value); }
};

}  // namespace

std::string to_csv(const Table& table) {
  std::string out;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    out += (c > 0 ? "," : "") + field(table.columns[c].key);
  }
  out += "\r\n";
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += (c > 0 ? "," : "") + std::visit(CsvText(), row[c].value);
    }
    out += "\r\n";
  }
  return out;
}

}  // namespace lockbench::results
