#include "results/tables/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kReset = "\x1b[0m";

std::string_view color_of(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "\x1b[32m";
    case Tone::bad:
      return "\x1b[31m";
    case Tone::doubtful:
      return "\x1b[33m";
    case Tone::plain:
      return "";
  }
  return "";
}

class Layout {
 public:
  Layout(Sheet sheet, const TableOptions& options) : sheet_(std::move(sheet)), options_(options) {
    for (std::size_t c = 0; c < sheet_.columns.size(); ++c) {
      const Column& column = *sheet_.columns[c];
      std::size_t width = std::max(display_width(column.group), display_width(column.name));
      for (const auto& row : sheet_.rows) {
        width = std::max(width, display_width(row[c].text));
      }
      widths_.push_back(width);
    }
    while (options_.width && total_width() > *options_.width && sheet_.columns.size() > 1) {
      drop_least_important();
    }
    if (options_.width) {
      widths_.front() = std::min(widths_.front(), *options_.width);
    }
  }

  std::string text() const {
    std::string out = header([](const Column& column) { return column.group; });
    out += header([](const Column& column) { return column.name; });
    for (const auto& row : sheet_.rows) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c) {
        append(line, c, row[c].text, options_.color ? color_of(row[c].tone) : "");
      }
      out += finished(std::move(line));
    }
    return out;
  }

  /// Titles of the columns that there was no room for, with what was counted in them.
  const std::vector<std::string>& dropped() const { return dropped_; }

 private:
  std::size_t total_width() const {
    std::size_t total = kGap.size() * (widths_.size() - 1);
    for (const std::size_t width : widths_) {
      total += width;
    }
    return total;
  }

  void drop_least_important() {
    const auto least =
        std::max_element(sheet_.columns.begin(), sheet_.columns.end(),
                         [](const Column* a, const Column* b) { return a->rank < b->rank; });
    const auto at = least - sheet_.columns.begin();
    dropped_.push_back(title(**least) + counts_of(static_cast<std::size_t>(at)));
    sheet_.columns.erase(least);
    widths_.erase(widths_.begin() + at);
    for (auto& row : sheet_.rows) {
      row.erase(row.begin() + at);
    }
  }

  /// " (redlock 3, none 12)"; nothing if nothing happened.
  std::string counts_of(std::size_t c) const {
    std::vector<std::string> counts;
    for (const auto& row : sheet_.rows) {
      if (row[c].counted) {
        counts.push_back(fmt::format("{} {}", row.front().text, row[c].text));
      }
    }
    return counts.empty() ? "" : fmt::format(" ({})", fmt::join(counts, ", "));
  }

  template <class Part>
  std::string header(Part part) const {
    std::string line;
    for (std::size_t c = 0; c < sheet_.columns.size(); ++c) {
      append(line, c, part(*sheet_.columns[c]), options_.color ? kBold : "");
    }
    return finished(std::move(line));
  }

  /// Texts stand to the left, numbers to the right.
  void append(std::string& line, std::size_t c, std::string_view text,
              std::string_view color) const {
    const std::string shown = clip(text, widths_[c]);
    const std::string padding(widths_[c] - display_width(shown), ' ');
    const bool left = sheet_.columns[c]->unit == Unit::text;
    if (c > 0) {
      line += kGap;
    }
    line += left ? "" : padding;
    line += color.empty() || shown.empty() ? shown : fmt::format("{}{}{}", color, shown, kReset);
    line += left ? padding : "";
  }

  static std::string finished(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  Sheet sheet_;
  const TableOptions& options_;
  std::vector<std::size_t> widths_;
  std::vector<std::string> dropped_;
};

}  // namespace

std::string to_table(const Result& result, const KnownFlaws& flaws, const TableOptions& options) {
  std::vector<std::string> below;
  std::string out = "no runs\n";
  if (!result.runs.empty()) {
    const Layout layout(make_sheet(result, flaws), options);
    out = layout.text();
    if (!layout.dropped().empty()) {
      below.push_back(fmt::format("no room for: {}", fmt::join(layout.dropped(), ", ")));
    }
  }
  const std::vector<std::string> said = notes(result);
  below.insert(below.begin(), said.begin(), said.end());
  out += below.empty() ? "" : "\n";
  for (const std::string& line : below) {
    out += (options.width ? fold(line, *options.width) : line) + "\n";
  }
  return out;
}

}  // namespace lockbench::results
