#include "exporter/exporter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/text_serializer.h>

#include "exporter/collect.h"

namespace lockbench::exporter {
namespace {

constexpr unsigned kConnections = 64;
constexpr const char* kFrontPage =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>lockbench</title></head>\n<body><h1>lockbench"
    "</h1>\n<p><a href=\"/metrics\">Metrics</a> for Prometheus; <a href=\"/-/healthy\">healthy</a>"
    "? <a href=\"/-/ready\">ready</a>?</p>\n</body></html>\n";

/// The pages. Used on the endpoint's thread only.
class Pages {
 public:
  Pages(Metrics metrics, Facts facts) : metrics_(std::move(metrics)), facts_(std::move(facts)) {}

  Page answer(std::string_view path) {
    if (path == "/metrics") {
      return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text()};
    }
    if (path == "/-/healthy") return {.body = "healthy\n"};
    if (path == "/-/ready") {
      const auto failing = std::visit([](const auto& some) { return some->failing(); }, metrics_);
      if (failing.empty()) return {.body = "ready\n"};
      return {.status = 503, .body = fmt::format("{}\n", fmt::join(failing, "\n"))};
    }
    if (path == "/") return {.type = "text/html; charset=utf-8", .body = kFrontPage};
    return {.status = 404, .body = "not found; try /metrics, /-/healthy or /-/ready\n"};
  }

 private:
  /// Rebuilt at most ten times a second, so that frequent scrapes do not disturb the load.
  const std::string& metrics_text() {
    constexpr std::chrono::milliseconds kMaxAge{100};
    const auto now = std::chrono::steady_clock::now();
    if (text_.empty() || now - made_at_ > kMaxAge) {
      text_ = prometheus::TextSerializer().Serialize(
          std::visit([&](const auto& some) { return collect(*some, facts_); }, metrics_));
      made_at_ = now;
    }
    return text_;
  }

  const Metrics metrics_;
  const Facts facts_;
  std::string text_;
  std::chrono::steady_clock::time_point made_at_;
};

}  // namespace

tl::expected<void, std::string> available() { return {}; }

tl::expected<std::unique_ptr<HttpEndpoint>, std::string> serve(Metrics metrics, Facts facts,
                                                               const ListenAddress& address) {
  const auto pages = std::make_shared<Pages>(std::move(metrics), std::move(facts));
  return HttpEndpoint::start(
      address, [pages](std::string_view path) { return pages->answer(path); }, kConnections);
}

}  // namespace lockbench::exporter
