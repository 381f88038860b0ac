#include "exporter/exporter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/collectable.h>
#include <prometheus/gateway.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <future>
#include <system_error>
#include <thread>

#include "exporter/collect.h"
#include "exporter/http_endpoint.h"

namespace lockbench::exporter {
namespace {

constexpr const char* kFrontPage =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><title>lockbench</title></head>\n<body><h1>lockbench"
    "</h1>\n<p><a href=\"/metrics\">Metrics</a> for Prometheus; <a href=\"/-/healthy\">healthy</a>"
    "? <a href=\"/-/ready\">ready</a>?</p>\n</body></html>\n";

constexpr Duration kPushWithin = std::chrono::seconds(10);

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Prometheus' library reads it on every scrape or push. Thread-safe.
struct Collected : prometheus::Collectable {
  Collected(Metrics of, Facts about) : metrics(std::move(of)), facts(std::move(about)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    return std::visit([this](const auto& some) { return collect(*some, facts); }, metrics);
  }

  const Metrics metrics;
  const Facts facts;
};

class RealExporter : public Exporter {
 public:
  explicit RealExporter(std::shared_ptr<Collected> collected) : collected_(std::move(collected)) {}

  tl::expected<ListenAddress, std::string> serve(const ListenAddress& address,
                                                 unsigned connections) override {
    auto endpoint = HttpEndpoint::start(
        address, [this](std::string_view path) { return answer(path); }, connections);
    if (!endpoint) return tl::unexpected(endpoint.error());
    endpoint_ = std::move(*endpoint);
    return endpoint_->address();
  }

  tl::expected<void, std::string> push(const PushTarget& target) override {
    // The library supports neither time-outs nor paths: it joins its first two arguments with a
    // colon and appends /metrics.
    std::packaged_task<int()> task([target, collected = collected_] {
      auto labels = prometheus::Gateway::GetInstanceLabel(host_name());
      // Ranks of one host must not replace each other's metrics.
      const std::string& rank = collected->facts.rank;
      if (!rank.empty()) labels.emplace("rank", rank);
      prometheus::Gateway gateway(target.scheme, "//" + target.Url::display(), "lockbench", labels,
                                  target.user, target.password);
      gateway.RegisterCollectable(collected);
      // A PUT, in spite of its name. Push() is a POST, which keeps old series that this push lacks.
      return gateway.PushAdd();
    });
    std::future<int> answer = task.get_future();
    // The thread owns everything it uses, so it may outlive this call.
    try {
      std::thread(std::move(task)).detach();
    } catch (const std::system_error& error) {
      return tl::unexpected(fmt::format("a thread cannot be started: {}", error.what()));
    }
    if (answer.wait_for(kPushWithin) != std::future_status::ready) {
      return tl::unexpected(fmt::format("no answer from {} within {}", target.display(),
                                        format_duration(kPushWithin)));
    }
    int status = 0;
    try {
      status = answer.get();
    } catch (const std::exception& error) {
      return tl::unexpected(fmt::format("{}: {}", target.display(), error.what()));
    }
    if (status >= 200 && status < 300) return {};
    if (status < 100) return tl::unexpected(target.display() + " cannot be reached");
    return tl::unexpected(fmt::format("{} answered with status {}", target.display(), status));
  }

 private:
  Page answer(std::string_view path) {
    if (path == "/metrics") {
      return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text()};
    }
    if (path == "/-/healthy") return {.body = "healthy\n"};
    if (path == "/-/ready") {
      const auto failing =
          std::visit([](const auto& some) { return some->failing(); }, collected_->metrics);
      if (failing.empty()) return {.body = "ready\n"};
      return {.status = 503, .body = fmt::format("{}\n", fmt::join(failing, "\n"))};
    }
    if (path == "/") return {.type = "text/html; charset=utf-8", .body = kFrontPage};
    return {.status = 404, .body = "not found; try /metrics, /-/healthy or /-/ready\n"};
  }

  /// Rebuilt at most ten times a second, so that frequent scrapes do not disturb the load.
  const std::string& metrics_text() {
    constexpr std::chrono::milliseconds kMaxAge{100};
    const auto now = std::chrono::steady_clock::now();
    if (text_.empty() || now - made_at_ > kMaxAge) {
      text_ = prometheus::TextSerializer().Serialize(collected_->Collect());
      made_at_ = now;
    }
    return text_;
  }

  const std::shared_ptr<Collected> collected_;
  // Used on the endpoint's thread only:
  std::string text_;
  std::chrono::steady_clock::time_point made_at_;
  std::unique_ptr<HttpEndpoint> endpoint_;  ///< last: its thread uses the other members
};

}  // namespace

tl::expected<void, std::string> available() { return {}; }

std::unique_ptr<Exporter> Exporter::make(Metrics metrics, const Facts& facts) {
  return std::make_unique<RealExporter>(std::make_shared<Collected>(std::move(metrics), facts));
}

}  // namespace lockbench::exporter
