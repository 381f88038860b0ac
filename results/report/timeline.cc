#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "results/report/report.h"
#include "results/tables/formats.h"
#include "results/tables/hazards.h"

namespace lockbench::results::report {
namespace {

constexpr std::size_t kMostEvents = 100, kMostClients = 8;
constexpr int kRow = 22, kTop = 62, kTime = 76, kLane = 84, kBar = 14, kText = 460;

/// What a client does between two events.
struct State {
  bool owns = false;     ///< treats the lock as its own
  bool stopped = false;  ///< its process, or its thread
};

/// What hazards/play.cc says of a client that begins, or ceases, to treat a lock as its own.
constexpr std::array<std::string_view, 1> kGains{"is granted the lock"};
constexpr std::array<std::string_view, 4> kLosses{
    "releases the lock", "tries to release, and learns", "knows that it has lost the lock",
    "tries to renew, and learns"};

bool begins_with_one_of(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](auto one) { return text.starts_with(one); });
}

void change(State& state, const std::string& name, const HazardEvent& event) {
  if (event.who == name) {
    if (begins_with_one_of(event.what, kGains)) state.owns = true;
    if (begins_with_one_of(event.what, kLosses)) state.owns = false;
  } else if (event.what == name + " is stopped") {
    state.stopped = true;
  } else if (event.what == name + " is resumed") {
    state.stopped = false;
  } else if (event.what == name + " is killed" || event.what == name + " dies") {
    state = {};
  }
}

/// In the order of their first event.
std::vector<std::string> clients_of(std::span<const HazardEvent> events) {
  std::vector<std::string> clients;
  for (const HazardEvent& event : events) {
    if (event.who == "fault" || std::ranges::count(clients, event.who) > 0) continue;
    if (clients.size() < kMostClients) clients.push_back(event.who);
  }
  return clients;
}

std::string words(int x, int y, std::string_view text, std::string_view more = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", x, y, more.empty() ? "" : " ", more,
                     html_text(text, 110));
}

std::string box(int x, int y, int width, int height, std::string_view fill,
                std::string_view more = "") {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}{}/>\n", x, y,
                     width, height, fill, more.empty() ? "" : " ", more);
}

/// The state of each client from this event to the next one.
std::string row(int y, int lanes_end, const std::vector<State>& states) {
  const bool several = std::ranges::count(states, true, &State::owns) > 1;
  std::string out = several ? box(kTime - 4, y, lanes_end - kTime, kRow, "#fde7e4") : "";
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!states[i].owns) continue;
    out += box(kTime + static_cast<int>(i) * kLane, y, kBar, kRow, several ? "#a4190f" : "#0072b2",
               states[i].stopped ? "fill-opacity=\"0.4\"" : "");
  }
  return out;
}

}  // namespace

std::string timeline_svg(const Hazard& hazard) {
  const std::span events(hazard.timeline.data(), std::min(hazard.timeline.size(), kMostEvents));
  const std::vector<std::string> clients = clients_of(events);
  const int count = static_cast<int>(events.size());
  const int lanes_end = kTime + static_cast<int>(clients.size()) * kLane;
  const int width = lanes_end + kText, height = kTop + count * kRow + 34;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#1c2128\" role=\"img\">\n",
      width, height);
  const std::string title =
      fmt::format("{} / {}: {}", hazard.scenario, hazard.strategy, hazard.observed);
  out += fmt::format("<title>{}</title>\n", html_text(title));
  out += box(0, 0, width, height, "#ffffff") + words(10, 22, title, "font-weight=\"bold\"");
  for (std::size_t i = 0; i < clients.size(); ++i) {
    out += words(kTime + static_cast<int>(i) * kLane, kTop - 12, clip(clients[i], 11),
                 "font-weight=\"bold\"");
  }
  std::vector<State> states(clients.size());
  int y = kTop;
  for (const HazardEvent& event : events) {
    for (std::size_t i = 0; i < clients.size(); ++i) change(states[i], clients[i], event);
    out += row(y, lanes_end, states);
    out += words(kTime - 14, y + kBar, fmt::format("{:.3f} s", event.t),
                 "text-anchor=\"end\" fill=\"#57606a\"");
    const bool fault = event.who == "fault";
    out += words(lanes_end, y + kBar, fault ? event.what : event.who + " " + event.what,
                 fault ? "fill=\"#a4190f\"" : "");
    y += kRow;
  }
  out += words(10, y + 22,
               "bar: treats the lock as its own; pale: stopped; red: more than one client does",
               "fill=\"#57606a\"");
  return out + "</svg>\n";
}

}  // namespace lockbench::results::report
