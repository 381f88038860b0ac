#include "results/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "results/file/loads.h"
#include "results/report/charts.h"
#include "results/report/page_files.h"
#include "results/tables/observed.h"
#include "results/tables/show.h"

namespace lockbench::results::report {
namespace {

// Bounds of a page: results may be of any size.
constexpr std::size_t kMostPlayBytes = 900'000;  ///< of all plays' texts
constexpr std::size_t kMostPlayLines = 100;
constexpr std::size_t kMostPictureBytes = 300'000;  ///< of all plays' pictures
constexpr std::size_t kMostChartPoints = 150'000;
constexpr std::size_t kMostHistories = 6;
constexpr std::size_t kMostCode = 4000;

std::string heading(int level, std::string_view text) {
  return text.empty() ? "" : fmt::format("<h{0}>{1}</h{0}>\n", level, html_text(text));
}

std::string paragraph(std::string_view text) {
  return text.empty() ? "" : fmt::format("<p class=\"soft\">{}</p>\n", html_text(text, 1000));
}

/// Keeps the lines of the text, at most kMostPlayLines.
std::string preformatted(std::string_view text) {
  std::string out = "<pre tabindex=\"0\">";
  for (std::size_t line = 0; !text.empty(); ++line) {
    if (line == kMostPlayLines) {
      out += "… more in the file\n";
      break;
    }
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += html_text(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "</pre>\n";
}

std::string folded_away(const std::string& title, const std::string& inside) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(title), inside);
}

std::string to_html(const Block& block) {
  return heading(3, block.title) + results::to_html(block.table) + results::to_html(block.lines);
}

/// Leaves out rows without a value.
std::string pairs_html(const std::string& name, const std::string& value,
                       std::vector<std::pair<std::string, std::string>> rows) {
  using Pair = std::pair<std::string, std::string>;
  std::erase_if(rows, [](const Pair& row) { return row.second.empty(); });
  return results::to_html(table_of<Pair>(
      {{{name, "", name}, &Pair::first}, {{value, "", value}, &Pair::second}}, rows));
}

class Page {
 public:
  void add_part(const Source& source) {
    const Result& result = source.result;
    body_ += paragraph(fmt::format("{} · {}, {} cores", result.started_at, result.environment.cpu,
                                   result.environment.cores));
    for (const Block& block : blocks_of(result, source.flaws)) body_ += to_html(block);
    add_charts(result);
    if (result.hazards) add_plays(*result.hazards);
    if (result.observed) add_watch(result);
    add_facts(source);
  }

  void add(const std::string& html) { body_ += html; }

  /// The text for a place of the template. An unknown place is a bug in page.html.
  std::string filling(std::string_view place, const std::string& title,
                      const std::string& nonce) const {
    if (place == "nonce") return nonce;
    if (place == "title") return html_text(title, 120);
    if (place == "body") return body_;
    if (place == "charts") return to_json(charts_);
    for (const auto& [name, text] : files::kAll) {
      if (name == place) return std::string(text);
    }
    throw std::logic_error(fmt::format("page.html asks for {}, which does not exist", place));
  }

 private:
  void add_chart(Chart chart, const std::string& load) {
    if (chart.lines.empty()) return;
    std::size_t points = 0;
    for (const Chart::Line& line : chart.lines) points += line.points.size();
    if (chart_points_ + points > kMostChartPoints) {
      body_ += paragraph("A chart is left out to limit the page: make a report of fewer files.");
      return;
    }
    chart_points_ += points;
    const std::string title = load.empty() ? chart.title : load + ": " + chart.title;
    body_ += fmt::format(
        "<figure class=\"chart\" data-chart=\"{}\" hidden>\n{}{}<div><canvas role=\"img\" "
        "aria-label=\"{}. The tables have the figures.\"></canvas></div>\n</figure>\n",
        charts_.size(), heading(3, title), paragraph(chart.note), html_text(title));
    charts_.push_back(std::move(chart));
  }

  /// Each load has its own charts: figures of different loads do not belong into one chart.
  void add_charts(const Result& result) {
    if (result.runs.empty()) {
      const std::vector<Simulation> none;
      for (Chart& chart : sweep_charts(result.simulation.value_or(none))) {
        add_chart(std::move(chart), "");
      }
      return;
    }
    const bool several = has_several_loads(result);
    std::vector<Result> loads = several ? split_by_load(result) : std::vector{result};
    // The charts compare strategies, not the points of an experiment or a sweep.
    if (is_experiment(result) || is_sweep(result)) loads.clear();
    if (is_sweep(result)) add_sweep_charts(result);
    for (const Result& one : loads) {
      const std::string load = several ? label(one.runs.front().load, result) : "";
      for (Chart& chart : charts_of(one)) add_chart(std::move(chart), load);
    }
    body_ += folded_away("All figures of each strategy",
                         results::to_html(*chosen(run_table(result, {}), {"all"})));
  }

  void add_sweep_charts(const Result& result) {
    for (const auto& [load, runs] :
         grouped(result.runs, [](const Run& run) { return run.load.name; })) {
      Result one{.workload = result.workload};
      for (const Run* run : runs) one.runs.push_back(*run);
      for (Chart& chart : sweep_charts(one)) add_chart(std::move(chart), load);
    }
  }

  /// Only of a lock that failed, and as long as there is room.
  std::string picture_of(const Hazard& hazard) {
    if (hazard.timeline.empty() || !does_harm(hazard.observed)) return "";
    const std::string picture = timeline_svg(hazard);
    if (picture_bytes_ + picture.size() > kMostPictureBytes) return "";
    picture_bytes_ += picture.size();
    return "<div class=\"scroll\" tabindex=\"0\">" + picture + "</div>\n";
  }

  /// The events of each play, by scenario.
  void add_plays(const std::vector<Hazard>& hazards) {
    std::string scenarios;
    std::size_t left_out = 0;
    for (const auto& [scenario, plays] : grouped(hazards, &Hazard::scenario)) {
      std::string shown;
      for (const Hazard* hazard : plays) {
        if (hazard->observed == "not-applicable" && hazard->timeline.empty()) continue;
        const std::string told = preformatted(explain(*hazard));
        const bool fits = play_bytes_ + told.size() <= kMostPlayBytes;
        if (!fits) ++left_out;
        if (!fits) continue;
        play_bytes_ += told.size();
        shown += folded_away(fmt::format("{}: {}", hazard->strategy, hazard->observed),
                             picture_of(*hazard) + told);
      }
      if (!shown.empty()) scenarios += folded_away(scenario, shown);
    }
    if (!scenarios.empty()) body_ += heading(3, "Play by play") + scenarios;
    if (left_out > 0) {
      body_ += paragraph(fmt::format(
          "{} plays are shown without their timeline; the file has all of them", left_out));
    }
  }

  void add_watch(const Result& result) {
    static const std::vector<Field<ObservedLock::Moment>> fields{
        {{"t", "", "at", Unit::seconds}, &ObservedLock::Moment::t},
        {{"what", "", "what"}, &ObservedLock::Moment::what},
        {{"holder", "", "client"}, &ObservedLock::Moment::holder},
        {{"waiting", "", "waiting", Unit::count}, &ObservedLock::Moment::waiting}};
    if (!result.locks.empty()) {
      body_ +=
          to_html({.title = "The locks that hurt most", .table = shown(lock_table(result.locks))});
    }
    std::size_t histories = 0;
    for (const ObservedLock& lock : result.locks) {
      if (lock.history.empty() || histories == kMostHistories) continue;
      ++histories;
      body_ += folded_away("The latest events of " + lock.lock,
                           results::to_html(table_of(fields, lock.history)));
    }
    if (!result.sources.empty()) {
      body_ += to_html({.title = "How it was seen", .table = source_table(result.sources)});
    }
  }

  /// How the result was made.
  void add_facts(const Source& source) {
    const Result& result = source.result;
    if (!result.command.empty()) {
      body_ += heading(3, "The command to repeat it") +
               fmt::format("<pre tabindex=\"0\">{}</pre>\n",
                           html_text(command_line(result.command), kMostCode));
    }
    if (const Table ranks = rank_table(result); !ranks.rows.empty() && result.runs.size() > 1) {
      body_ += folded_away("Ranks", results::to_html(ranks));
    }
    const Environment& environment = result.environment;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    std::vector<std::pair<std::string, std::string>> facts{
        {"result", result.id},
        {"lockbench", fmt::format("{}, {}, {}", result.lockbench.version, result.lockbench.commit,
                                  result.lockbench.build_type)},
        {"memory", fmt::format("{:.1f} GiB", static_cast<double>(environment.memory_bytes) / kGiB)},
        {"kernel", environment.kernel}};
    for (const auto& [name, server] : environment.servers) {
      const std::string secured = server.encryption ? ", " + *server.encryption : "";
      facts.emplace_back(name, fmt::format("{} at {}{}", server.version,
                                           fmt::join(server.endpoints, ", "), secured));
    }
    body_ += folded_away("Environment", pairs_html("what", "which", facts));
    std::vector<std::pair<std::string, std::string>> settings;
    for (const auto& [name, value] : result.workload) {
      settings.emplace_back(name, value_text(value));
    }
    body_ +=
        folded_away("All settings (durations in seconds)", pairs_html("option", "value", settings));
  }

  /// Quoted, so that a hostile file cannot make the shell run anything else.
  static std::string command_line(const std::vector<std::string>& words) {
    constexpr std::string_view kPlain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+";
    std::string line = "lockbench";
    for (const std::string& word : words) {
      const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
      line += plain ? " " + word : " '";
      if (plain) continue;
      for (const char c : printable(word)) line += c == '\'' ? "'\\''" : std::string(1, c);
      line += '\'';
    }
    return line;
  }

  std::string body_;
  std::vector<Chart> charts_;
  std::size_t chart_points_ = 0, play_bytes_ = 0, picture_bytes_ = 0;
};

}  // namespace

std::string to_page(std::span<const Source> sources, const std::string& nonce) {
  const bool alone = sources.size() == 1;
  const auto name_of = [](const Source& source) {
    return source.file.empty() ? source.result.id : source.file;
  };
  const std::string title = "lockbench: " + (alone ? name_of(sources.front())
                                                   : fmt::format("{} results", sources.size()));
  Page page;
  page.add(heading(1, title));
  if (!alone) {
    std::string links;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      links +=
          fmt::format("<li><a href=\"#part{}\">{}</a></li>", i, html_text(name_of(sources[i])));
    }
    page.add("<nav><ul>" + links + "</ul></nav>\n");
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    page.add(fmt::format("<article id=\"part{}\">\n", i));
    if (!alone) page.add(heading(2, name_of(sources[i])));
    page.add_part(sources[i]);
    page.add("</article>\n");
  }
  constexpr std::string_view kOpen = "{{", kClose = "}}";
  std::string html;
  std::string_view rest = files::kTemplate;
  // Inserted text is not scanned again, so that data cannot refer to a place.
  for (auto at = rest.find(kOpen); at != std::string_view::npos; at = rest.find(kOpen)) {
    const auto end = rest.find(kClose, at);
    html += rest.substr(0, at);
    html += page.filling(rest.substr(at + kOpen.size(), end - at - kOpen.size()), title, nonce);
    rest.remove_prefix(end + kClose.size());
  }
  return html.append(rest);
}

std::string make_nonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", random());
  return nonce;
}

}  // namespace lockbench::results::report
