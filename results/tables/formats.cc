#include "results/tables/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "results/tables/text.h"

// Markdown, HTML and CSV; terminal.cc has text.
namespace lockbench::results {
namespace {

/// With another text for each of some characters.
std::string replaced(std::string_view text, std::string_view characters, auto replacement_of) {
  std::string out;
  for (const char c : text) {
    if (characters.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += replacement_of(c);
    }
  }
  return out;
}

std::string csv_text(const Value& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return "";
  if (text->find_first_of(",\"\r\n") == std::string::npos) return *text;
  return '"' + replaced(*text, "\"", [](char) { return "\"\""; }) + '"';
}

/// As page.css has it.
std::string class_of(Tone tone) {
  constexpr std::array<std::string_view, 4> kNames{"", "good", "bad", "doubtful"};
  const std::string_view name = kNames.at(static_cast<std::size_t>(tone));
  return name.empty() ? "" : fmt::format(" class=\"{}\"", name);
}

/// A title may have several lines.
std::string title_html(const Column& column) {
  const std::string text = title(column);
  std::vector<std::string> lines;
  for (std::size_t from = 0, end = 0; end != std::string::npos; from = end + 1) {
    end = text.find('\n', from);
    lines.push_back(html_text(std::string_view(text).substr(from, end - from)));
  }
  return fmt::format("{}", fmt::join(lines, "<br>"));
}

}  // namespace

std::string markdown_text(std::string_view text) {
  return replaced(text, "\\|`*_<>[]", [](char c) { return std::string{'\\', c}; });
}

std::string to_markdown(const Table& table, const std::vector<std::string>& notes) {
  const auto row_of = [](const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n", fmt::join(cells, " | "));
  };
  std::vector<std::string> titles;
  std::string rule = "|";
  for (const Column& column : table.columns) {
    titles.push_back(replaced(markdown_text(title(column)), "\n", [](char) { return "<br>"; }));
    rule += column.unit == Unit::text ? "---|" : "---:|";
  }
  std::string out = titles.empty() ? "" : row_of(titles) + rule + "\n";
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const Cell& cell : row) cells.push_back(markdown_text(cell.text));
    out += row_of(cells);
  }
  out += notes.empty() || out.empty() ? "" : "\n";
  for (const std::string& note : notes) out += fmt::format("- {}\n", markdown_text(note));
  return out;
}

std::string html_text(std::string_view text, std::size_t most) {
  // A longer text would be cut anyway; what printable() makes one character of may have four bytes.
  return replaced(clip(printable(text.substr(0, 4 * most)), most), "<>&\"'",
                  [](char c) { return fmt::format("&#{};", static_cast<int>(c)); });
}

std::string to_html(const std::vector<Sentence>& sentences) {
  constexpr std::size_t kMost = 60;
  if (sentences.empty()) return "";
  std::string out = "<ul>\n";
  for (std::size_t i = 0; i < sentences.size() && i < kMost; ++i) {
    out +=
        fmt::format("<li{}>{}</li>\n", class_of(sentences[i].tone), html_text(sentences[i].text));
  }
  if (sentences.size() > kMost) {
    out += fmt::format("<li>{} more are in the file</li>\n", sentences.size() - kMost);
  }
  return out + "</ul>\n";
}

std::string to_html(const Table& table) {
  constexpr std::size_t kMost = 400, kWords = 32;
  if (table.columns.empty()) return "";
  std::string out = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\">{}</th>", title_html(column));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size() && r < kMost; ++r) {
    out += "<tr>";
    for (std::size_t c = 0; c < table.rows[r].size(); ++c) {
      const Cell& cell = table.rows[r][c];
      const bool words = cell.tone == Tone::plain && cell.text.size() > kWords;
      const std::string text = html_text(cell.text);
      out += c == 0 ? fmt::format("<th scope=\"row\">{}</th>", text)
                    : fmt::format("<td{}>{}</td>", words ? " class=\"words\"" : class_of(cell.tone),
                                  text);
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (table.rows.size() > kMost) {
    out += fmt::format("<p class=\"soft\">{} more rows are in the file.</p>\n",
                       table.rows.size() - kMost);
  }
  return out;
}

std::string to_csv(const Table& table) {
  std::string out;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    out += (c > 0 ? "," : "") + csv_text(table.columns[c].key);
  }
  out += "\r\n";
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += (c > 0 ? "," : "") + csv_text(row[c].value);
    }
    out += "\r\n";
  }
  return out;
}

}  // namespace lockbench::results
