#include "results/tables/formats.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "results/file/loads.h"
#include "results/stats/figures.h"

namespace lockbench::results {
namespace {

/// The text with each of `characters` replaced.
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

/// With its special characters escaped.
std::string markdown_text(std::string_view text) {
  return replaced(text, "\\|`*_<>[]", [](char c) { return std::string{'\\', c}; });
}

std::string csv_text(const Value& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return "";
  if (text->find_first_of(",\"\r\n") == std::string::npos) return *text;
  return '"' + replaced(*text, "\"", [](char) { return "\"\""; }) + '"';
}

/// The class in page.css.
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

constexpr std::string_view kGap = "  ";
constexpr std::string_view kBold = "\x1b[1m", kReset = "\x1b[0m";

/// The escape code of the tone's color; empty for the plain one.
std::string_view code_of(Tone tone) {
  constexpr std::array<std::string_view, 4> kCodes{"", "\x1b[32m", "\x1b[31m", "\x1b[33m"};
  return kCodes[static_cast<std::size_t>(tone)];
}

class Layout {
 public:
  Layout(Table table, const TextStyle& style) : table_(std::move(table)), style_(style) {
    for (Column& column : table_.columns) {
      column.group = styled(column.group, style);
      column.name = styled(column.name, style);
      widths_.push_back(std::max(display_width(column.group), display_width(column.name)));
      two_lines_ = two_lines_ || !column.group.empty();
    }
    for (auto& row : table_.rows) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        row[c].text = styled(row[c].text, style);
        widths_[c] = std::max(widths_[c], display_width(row[c].text));
      }
    }
    while (style.width && total_width() > *style.width && drop_least_important()) {
    }
    if (style.width) widths_.front() = std::min(widths_.front(), *style.width);
  }

  std::string text() const {
    std::string out = two_lines_ ? header(&Column::group) : "";
    out += header(&Column::name);
    for (const auto& row : table_.rows) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c) {
        append(line, c, row[c].text, style_.color ? code_of(row[c].tone) : "");
      }
      out += finished(std::move(line));
    }
    return out;
  }

  /// Titles of the columns for which there was no room, with their counts.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  std::size_t total_width() const {
    std::size_t total = kGap.size() * (widths_.size() - 1);
    for (const std::size_t width : widths_) total += width;
    return total;
  }

  bool drop_least_important() {
    auto& columns = table_.columns;
    const auto least =
        std::max_element(columns.begin() + 1, columns.end(),
                         [](const Column& a, const Column& b) { return a.rank < b.rank; });
    if (least == columns.end() || least->rank == 0) return false;
    const auto place = least - columns.begin();
    left_out_.push_back(title(*least) + counts_of(static_cast<std::size_t>(place)));
    columns.erase(least);
    widths_.erase(widths_.begin() + place);
    for (auto& row : table_.rows) row.erase(row.begin() + place);
    return true;
  }

  /// " (redlock 3, none 12)"; nothing if nothing was counted.
  std::string counts_of(std::size_t c) const {
    std::vector<std::string> counts;
    if (table_.columns[c].unit != Unit::count) return "";
    for (const auto& row : table_.rows) {
      const auto* count = std::get_if<double>(&row[c].value);
      const bool counted = table_.columns[c].show == Show::if_any && count != nullptr && *count > 0;
      if (counted || row[c].tone != Tone::plain) {
        counts.push_back(fmt::format("{} {}", row.front().text, row[c].text));
      }
    }
    return counts.empty() ? "" : fmt::format(" ({})", fmt::join(counts, ", "));
  }

  std::string header(std::string Column::*part) const {
    std::string line;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      append(line, c, table_.columns[c].*part, style_.color ? kBold : "");
    }
    return finished(std::move(line));
  }

  /// Texts are aligned to the left, numbers to the right.
  void append(std::string& line, std::size_t c, std::string_view text,
              std::string_view code) const {
    const std::string fitting = clip(text, widths_[c]);
    const std::string padding(widths_[c] - display_width(fitting), ' ');
    const bool left = table_.columns[c].unit == Unit::text;
    line += fmt::format("{}{}{}{}{}{}", c > 0 ? kGap : "", left ? "" : padding,
                        fitting.empty() ? "" : code, fitting,
                        fitting.empty() || code.empty() ? "" : kReset, left ? padding : "");
  }

  static std::string finished(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  Table table_;
  const TextStyle& style_;
  std::vector<std::size_t> widths_;
  std::vector<std::string> left_out_;
  bool two_lines_ = false;
};

constexpr double kMicroseconds = 1e6;  ///< in a second

std::string percentile_lines(const Distribution& distribution, std::uint64_t samples) {
  std::string out;
  const auto line = [](double seconds, double share, std::uint64_t count) {
    return fmt::format("{:12.3f} {:2.12f} {:10}", kMicroseconds * seconds, share, count);
  };
  for (const PercentileStep& step : percentile_steps(distribution)) {
    const double share = step.percent / 100;
    out += line(step.value, share, step.samples) + fmt::format(" {:14.2f}\n", 1 / (1 - share));
  }
  // The last line has no distance to 100 % left.
  if (samples > 0) out += line(distribution.max, 1, samples) + "\n";
  return out;
}

/// "redis-queue", "redis-queue.demand-at-350-s".
std::string file_name_of(const Run& run, const Result& result) {
  if (!loads_differ(result)) return run.strategy;
  std::string load = label(run.load, result);
  for (char& c : load) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return run.strategy + "." + load;
}

}  // namespace

std::string to_markdown(const Block& block) {
  const auto row_of = [](const std::vector<std::string>& cells) {
    return fmt::format("| {} |\n", fmt::join(cells, " | "));
  };
  std::vector<std::string> titles;
  std::string rule = "|";
  for (const Column& column : block.table.columns) {
    titles.push_back(replaced(markdown_text(title(column)), "\n", [](char) { return "<br>"; }));
    rule += column.unit == Unit::text ? "---|" : "---:|";
  }
  std::string out = titles.empty() ? "" : row_of(titles) + rule + "\n";
  for (const auto& row : block.table.rows) {
    out += row_of(each_of(row, [](const Cell& cell) { return markdown_text(cell.text); }));
  }
  out += block.lines.empty() || out.empty() ? "" : "\n";
  for (const Sentence& line : block.lines) out += fmt::format("- {}\n", markdown_text(line.text));
  return block.title.empty() ? out : fmt::format("## {}\n\n{}", block.title, out);
}

std::string html_text(std::string_view text, std::size_t most) {
  // A longer text would be cut anyway; a character of printable() may come from four bytes.
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

std::string styled(std::string_view text, const TextStyle& style) {
  return style.ascii ? ascii(text) : std::string(text);
}

std::string folded(std::string_view text, const TextStyle& style) {
  const std::string line = styled(printable(text), style);
  return style.width ? fold(line, *style.width) : line;
}

std::string colored(const std::string& text, Tone tone, const TextStyle& style) {
  const std::string_view code = style.color ? code_of(tone) : "";
  return code.empty() ? text : fmt::format("{}{}{}", code, text, kReset);
}

std::string to_text(Block block, const TextStyle& style) {
  std::string out;
  if (!block.table.columns.empty()) {
    const Layout layout(std::move(block.table), style);
    out = layout.text();
    if (!layout.left_out().empty()) {
      block.lines.emplace_back(fmt::format("left out for lack of room ({}): {}", style.remedy,
                                           fmt::join(layout.left_out(), ", ")));
    }
  }
  out += block.lines.empty() || out.empty() ? "" : "\n";
  for (const Sentence& line : block.lines) out += folded(line.text, style) + "\n";
  return block.title.empty() ? out : styled(block.title, style) + "\n\n" + out;
}

std::string to_hgrm(const Distribution& distribution) {
  const std::uint64_t samples = distribution.count + distribution.censored.count;
  std::string out = fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile",
                                "TotalCount", "1/(1-Percentile)");
  out += percentile_lines(distribution, samples);
  out += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n",
                     kMicroseconds * distribution.mean, kMicroseconds * distribution.stddev);
  out += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n",
                     kMicroseconds * distribution.max, samples);
  return out;
}

std::map<std::string, std::string> hgrm_files(const Result& result) {
  std::map<std::string, std::string> files;
  for (const Run& run : result.runs) {
    for (const auto& [time, of] :
         {std::pair("acquire", &Run::acquire), std::pair("hold", &Run::hold),
          std::pair("release", &Run::release), std::pair("handoff", &Run::handoff)}) {
      if (!(run.*of).any()) continue;
      files[fmt::format("{}.{}.{}.hgrm", file_name_of(run, result), run.repetition, time)] =
          to_hgrm(run.*of);
    }
  }
  return files;
}

}  // namespace lockbench::results
