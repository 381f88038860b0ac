#include "tests/full/prometheus/prometheus.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"
#include "tests/support/must.h"
#include "tests/support/tcp_client.h"

namespace lockbench::test {
namespace {

constexpr testbed::Program kPrometheus{"prometheus", "prometheus"};

std::string encoded(const std::string& text) {
  std::string result;
  for (const char c : text) result += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  return result;
}

/// Short intervals, so that a run of seconds has enough samples.
std::string configuration(std::uint16_t scraped, const std::filesystem::path& rules,
                          const std::vector<std::string>& jobs) {
  std::string text = fmt::format(
      "global: {{scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 500ms}}\n"
      "rule_files: ['{0}/recording.yml', '{0}/alerts.yml']\nscrape_configs:\n",
      rules.string());
  for (const std::string& job : jobs) {
    text += fmt::format("  - {{job_name: {}, static_configs: [{{targets: ['127.0.0.1:{}']}}]}}\n",
                        job, scraped);
  }
  return text;
}

double number_in(const nlohmann::json& sample) {
  return std::stod(sample.at(1).get<std::string>());
}

}  // namespace

Prometheus::Prometheus(std::uint16_t scraped, const std::filesystem::path& rules,
                       const std::vector<std::string>& jobs)
    : testbed_(must(testbed::Testbed::start())) {
  testbed::ServerSpec spec;
  spec.folder = must(testbed_->make_server_folder("prometheus"));
  const std::uint16_t port = must(testbed::free_loopback_port());
  for (const char* name : {"recording.yml", "alerts.yml"}) {
    must(testbed_->lend(rules / name, spec.folder));
  }
  const auto written = testbed_->write_file(spec.folder / "prometheus.yml",
                                            configuration(scraped, spec.folder, jobs));
  if (!written) throw std::runtime_error(written.error());
  spec.argv = {must(testbed::find_program(kPrometheus)).string(),
               fmt::format("--config.file={}", (spec.folder / "prometheus.yml").string()),
               fmt::format("--storage.tsdb.path={}", (spec.folder / "data").string()),
               fmt::format("--web.listen-address=127.0.0.1:{}", port), "--log.level=warn"};
  spec.ports = {port};
  spec.ready = [](const testbed::Server& server) {
    return http_get(server.port(), "/-/ready").status == 200;
  };
  server_ = must(testbed::Server::start(*testbed_, std::move(spec)));
}

nlohmann::json Prometheus::get(const std::string& path) const {
  const HttpReply reply = http_get(server_->port(), path);
  const auto start = reply.body.find('{');
  const auto end = reply.body.rfind('}');
  if (start == std::string::npos) throw std::runtime_error("no answer to " + path);
  auto answer = nlohmann::json::parse(reply.body.substr(start, end - start + 1));
  if (answer.at("status") != "success") throw std::runtime_error(answer.dump());
  return answer.at("data");
}

std::size_t Prometheus::samples_of(const std::string& expression) const {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const auto data = get(fmt::format("/api/v1/query_range?query={}&start={}&end={}&step=1",
                                    encoded(expression), now - 60, now));
  std::size_t samples = 0;
  for (const auto& series : data.at("result")) {
    for (const auto& sample : series.at("values")) {
      if (!std::isnan(number_in(sample))) ++samples;
    }
  }
  return samples;
}

std::vector<double> Prometheus::values_of(const std::string& expression) const {
  const auto data = get("/api/v1/query?query=" + encoded(expression));
  std::vector<double> values;
  for (const auto& series : data.at("result")) values.push_back(number_in(series.at("value")));
  return values;
}

std::optional<double> Prometheus::value_of(const std::string& expression) const {
  const auto values = values_of("sum(" + expression + ")");
  if (values.empty()) return std::nullopt;
  return values.front();
}

}  // namespace lockbench::test
