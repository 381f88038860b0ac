#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "results/tables/formats.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kBold = "\x1b[1m", kReset = "\x1b[0m";

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

  /// Titles of the columns for which there was no room, with what was counted in them.
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

}  // namespace

std::string_view code_of(Tone tone) {
  constexpr std::array<std::string_view, 4> kCodes{"", "\x1b[32m", "\x1b[31m", "\x1b[33m"};
  return kCodes[static_cast<std::size_t>(tone)];
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

std::string to_text(Table table, std::vector<std::string> notes, const TextStyle& style) {
  std::string out;
  if (!table.columns.empty()) {
    const Layout layout(std::move(table), style);
    out = layout.text();
    if (!layout.left_out().empty()) {
      notes.push_back(fmt::format("left out for lack of room ({}): {}", style.remedy,
                                  fmt::join(layout.left_out(), ", ")));
    }
  }
  out += notes.empty() || out.empty() ? "" : "\n";
  for (const std::string& note : notes) out += folded(note, style) + "\n";
  return out;
}

}  // namespace lockbench::results
