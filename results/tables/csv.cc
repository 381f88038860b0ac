#include "results/tables/csv.h"

#include <fmt/format.h>

#include "results/tables/columns.h"

namespace lockbench::results {
namespace {

std::string field(const Column& column, const Row& row) {
  if (column.text != nullptr) {
    return csv_field(column.text(row));
  }
  const auto value = merged(row, column);
  return value ? fmt::format("{}", *value) : "";
}

template <class Field>
std::string line(Field field_of) {
  std::string out;
  for (const Column& column : all_columns()) {
    if (!column.header.empty()) {
      out += out.empty() ? "" : ",";
      out += field_of(column);
    }
  }
  return out + "\r\n";
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    out.append(c == '"' ? 2 : 1, c);
  }
  out += '"';
  return out;
}

std::string to_csv(const Result& result) {
  std::string out = line([](const Column& column) { return csv_field(column.header); });
  for (const Run& run : result.runs) {
    const Row row{{&run}, ""};
    out += line([&row](const Column& column) { return field(column, row); });
  }
  return out;
}

}  // namespace lockbench::results
