#include <fmt/format.h>

#include <random>
#include <stdexcept>
#include <string_view>

#include "results/report/page_files.h"
#include "results/report/report.h"
#include "results/tables/text.h"

namespace lockbench::results::report {
namespace {

constexpr std::string_view kOpen = "{{", kClose = "}}";

std::string html_text(std::string_view given) {
  std::string out;
  for (const char c : printable(given)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// The text for a place of the template. An unknown place is a bug in page.html.
std::string filling(std::string_view place, const View& view, const std::string& nonce) {
  if (place == "nonce") return nonce;
  if (place == "title") return html_text(clip(view.title, 120));
  if (place == "data") return to_view_json(view);
  for (const auto& [name, text] : files::kAll) {
    if (name == place) return std::string(text);
  }
  throw std::logic_error(fmt::format("page.html asks for {}, which does not exist", place));
}

}  // namespace

std::string to_page(const View& view, const std::string& nonce) {
  std::string page;
  std::string_view rest = files::kTemplate;
  // Inserted text is not scanned again, so that data cannot refer to a place.
  for (auto at = rest.find(kOpen); at != std::string_view::npos; at = rest.find(kOpen)) {
    const auto end = rest.find(kClose, at);
    page += rest.substr(0, at);
    page += filling(rest.substr(at + kOpen.size(), end - at - kOpen.size()), view, nonce);
    rest.remove_prefix(end + kClose.size());
  }
  return page.append(rest);
}

std::string make_nonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", random());
  return nonce;
}

}  // namespace lockbench::results::report
