#include "exporter/exporter.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "exporter/collector.h"
#include "exporter/http_endpoint.h"
#include "exporter/push.h"

namespace lockbench::exporter {
namespace {

constexpr const char* kFrontPage =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>lockbench</title></head>\n<body><h1>lockbench"
    "</h1>\n<p><a href=\"/metrics\">Metrics</a> for Prometheus; <a href=\"/-/healthy\">healthy</a>"
    "?</p>\n</body></html>\n";

/// The metrics as text, rebuilt at most ten times a second, so that frequent scrapes do not disturb
/// the load.
class MetricsPage {
 public:
  explicit MetricsPage(const prometheus::Collectable& metrics) : metrics_(metrics) {}

  std::string text() {
    constexpr std::chrono::milliseconds kMaxAge{100};
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (text_.empty() || now - made_at_ > kMaxAge) {
      text_ = prometheus::TextSerializer().Serialize(metrics_.Collect());
      made_at_ = now;
    }
    return text_;
  }

 private:
  const prometheus::Collectable& metrics_;
  std::mutex mutex_;
  std::string text_;
  std::chrono::steady_clock::time_point made_at_;
};

class RealExporter : public Exporter {
 public:
  RealExporter(const std::vector<const Descriptor*>& strategies, int nodes, const Facts& facts)
      : metrics_(std::make_shared<RunMetrics>(strategies, nodes)),
        collector_(std::make_shared<Collector>(metrics_, facts)),
        page_(*collector_) {}

  RunMetrics& metrics() override { return *metrics_; }

  tl::expected<ListenAddress, std::string> serve(const ListenAddress& address,
                                                 unsigned connections) override {
    auto endpoint = HttpEndpoint::start(
        address, [this](std::string_view path) { return answer(path); }, connections);
    if (!endpoint) return tl::unexpected(endpoint.error());
    endpoint_ = std::move(*endpoint);
    return endpoint_->address();
  }

  tl::expected<void, std::string> push(const PushTarget& target) override {
    return exporter::push(target, collector_);
  }

 private:
  Page answer(std::string_view path) {
    if (path == "/metrics") {
      return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = page_.text()};
    }
    if (path == "/-/healthy") return {.body = "healthy\n"};
    if (path == "/") return {.type = "text/html; charset=utf-8", .body = kFrontPage};
    return {.status = 404, .body = "not found; try /metrics or /-/healthy\n"};
  }

  std::shared_ptr<RunMetrics> metrics_;
  std::shared_ptr<Collector> collector_;
  MetricsPage page_;
  std::unique_ptr<HttpEndpoint> endpoint_;  ///< last: its thread uses the other members
};

}  // namespace

tl::expected<void, std::string> available() { return {}; }

std::unique_ptr<Exporter> Exporter::make(const std::vector<const Descriptor*>& strategies,
                                         int nodes, const Facts& facts) {
  return std::make_unique<RealExporter>(strategies, nodes, facts);
}

}  // namespace lockbench::exporter
