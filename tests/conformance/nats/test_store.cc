#include <fmt/format.h>

#include <ctime>
#include <iomanip>
#include <sstream>

#include "strategies/carrier.h"
#include "tests/conformance/common/bench.h"
#include "tests/conformance/nats/nats_test_store.h"

namespace lockbench::test {
namespace {

using Json = NatsTestStore::Json;

/// Decodes the last part of a subject.
std::string key_in(const std::string& subject) {
  const std::string encoded = subject.substr(subject.rfind('.') + 1);
  std::string key;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != '=') {
      key += encoded[i];
      continue;
    }
    key += static_cast<char>(std::stoi(encoded.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return key;
}

/// The value of a header; empty: none.
std::string header_in(const std::string& message, const std::string& name) {
  const std::size_t at = message.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 4;
  return message.substr(begin, message.find("\r\n", begin) - begin);
}

/// "2026-11-30T13:01:06.302396105Z"
WallTime time_in(const std::string& text) {
  std::tm parts{};
  std::istringstream(text) >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S");
  const std::size_t point = text.find('.');
  const double fraction = point == std::string::npos ? 0 : std::stod("0" + text.substr(point));
  return std::chrono::system_clock::from_time_t(timegm(&parts)) +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(fraction));
}

}  // namespace

Json NatsTestStore::ask(const std::string& request, const Json& payload) {
  const auto answer = ask_nats(*server_, "$JS.API." + request, payload.dump());
  return Json::parse(must(answer));
}

std::vector<std::string> NatsTestStore::streams() {
  const Json names = ask("STREAM.NAMES").at("streams");
  return names.is_null() ? std::vector<std::string>() : names.get<std::vector<std::string>>();
}

std::chrono::nanoseconds NatsTestStore::max_age_of(const std::string& stream) {
  return std::chrono::nanoseconds(
      ask("STREAM.INFO." + stream).at("config").at("max_age").get<std::int64_t>());
}

void NatsTestStore::put(const std::string& subject, const std::string& value) {
  must(ask_nats(*server_, subject, value));
}

std::vector<NatsTestStore::Entry> NatsTestStore::entries() {
  std::vector<Entry> all;
  for (const std::string& stream : streams()) {
    const Json info = ask("STREAM.INFO." + stream, {{"subjects_filter", ">"}});
    const Json& state = info.at("state");
    if (!state.contains("subjects")) continue;
    for (const auto& [subject, count] : state.at("subjects").items()) {
      const std::string message =
          must(ask_nats(*server_, fmt::format("$JS.API.DIRECT.GET.{}.{}", stream, subject)));
      // It may have expired meanwhile: "NATS/1.0 404 Message Not Found".
      const std::string time = header_in(message, "Nats-Time-Stamp");
      if (time.empty() || !header_in(message, "KV-Operation").empty()) continue;
      all.push_back({.stream = stream,
                     .subject = subject,
                     .key = key_in(subject),
                     .time = time,
                     .value = message.substr(message.find("\r\n\r\n") + 4)});
    }
  }
  return all;
}

void NatsTestStore::clear() {
  for (const std::string& stream : streams()) ask("STREAM.DELETE." + stream);
}

std::vector<std::string> NatsTestStore::keys() {
  std::vector<std::string> all = keys_of(true);
  for (std::string& key : keys_of(false)) all.push_back(std::move(key));
  return all;
}

std::vector<std::string> NatsTestStore::keys_of(bool that_expire) {
  std::vector<std::string> keys;
  for (const Entry& entry : entries()) {
    const bool expires = max_age_of(entry.stream) > std::chrono::nanoseconds::zero();
    if (expires == that_expire) keys.push_back(entry.key);
  }
  return keys;
}

std::optional<TimePoint> NatsTestStore::end_of(const std::string& key) {
  for (const Entry& entry : entries()) {
    if (entry.key != key) continue;
    const auto age = max_age_of(entry.stream);
    if (age == std::chrono::nanoseconds::zero()) return end_of_record(entry.value);
    const Carrier& carrier = Carrier::current();
    return carrier.now() + (time_in(entry.time) + age - carrier.wall_now());
  }
  return std::nullopt;
}

void NatsTestStore::take_away(const std::vector<std::string>& keys) {
  for (const Entry& entry : entries()) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) continue;
    ask("STREAM.PURGE." + entry.stream, {{"filter", entry.subject}});
  }
}

NatsTestStore& shared_nats() { return dynamic_cast<NatsTestStore&>(shared_store()); }

namespace {

const TestedStoreRegistration registration({.name = "nats",
                                            .backends = {"nats"},
                                            .shared = the_one<NatsTestStore>,
                                            .make = another<NatsTestStore>});

}  // namespace

}  // namespace lockbench::test
