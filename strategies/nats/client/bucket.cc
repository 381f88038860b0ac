#include "strategies/nats/client/bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strategies/number.h"

namespace lockbench::nats {
namespace {

/// JetStream accepts no shorter max_age, and no longer window for duplicates than max_age.
constexpr std::chrono::milliseconds kShortestAge{100};
constexpr std::chrono::minutes kDuplicates{2};
/// Of which a client knows the age; then it asks again.
constexpr std::size_t kMostBuckets = 1024;
/// A line of the protocol has 4096 bytes, and a key up to three for a character.
constexpr std::size_t kLongestKey = 512;

/// As nats.go makes a bucket with a history of one.
nlohmann::json new_bucket(const Place& place) {
  const std::string bucket = place.stream.substr(std::string_view("KV_").size());
  return nlohmann::json{{"name", place.stream},
                        {"subjects", nlohmann::json::array({fmt::format("$KV.{}.>", bucket)})},
                        {"retention", "limits"},
                        {"storage", "file"},
                        {"num_replicas", 1},
                        {"max_msgs_per_subject", 1},
                        {"discard", "new"},
                        {"deny_delete", true},
                        {"allow_rollup_hdrs", true},
                        {"allow_direct", true}};
}

/// The configuration with this TTL.
std::string with_age(nlohmann::json configuration, Duration age) {
  configuration["max_age"] = age == Duration::max() ? 0 : age.count();
  configuration["duplicate_window"] = Duration(std::min<Duration>(kDuplicates, age)).count();
  return configuration.dump();
}

}  // namespace

tl::unexpected<StoreError> Bucket::refused(const Answer& answer) const {
  return nats_.fail(StoreError::Kind::rejected,
                    answer.why.empty() ? "JetStream refused without a reason" : answer.why);
}

StoreResult<std::optional<VersionedItem>> Bucket::get(const std::string& key,
                                                      const std::stop_token& stop) {
  return look(place_of(key, expires_), key, stop).map([](const Look& seen) { return seen.item; });
}

/// From the stream's leader: a "direct get" may read a replica that lags behind, and is not
/// answered if there is no such stream.
StoreResult<Bucket::Look> Bucket::look(const Place& place, std::string_view key,
                                       const std::stop_token& stop) {
  if (key.empty() || key.size() > kLongestKey) {
    return nats_.fail(StoreError::Kind::not_sent,
                      fmt::format("a key must have 1 to {} characters", kLongestKey));
  }
  if (!ages_.contains(place.stream)) {
    const auto stream = stream_of(place, key, stop);
    if (!stream) return tl::unexpected(stream.error());
    if (stream->refusal == Refusal::no_stream) return Look{};
    if (stream->refusal != Refusal::none) return refused(*stream);
  }
  const auto answer =
      manage("STREAM.MSG.GET", place, key,
             nlohmann::json::object({{"last_by_subj", place.subject}}).dump(), stop);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->refusal == Refusal::no_stream) ages_.erase(place.stream);
  if (answer->refusal == Refusal::no_stream || answer->refusal == Refusal::no_message)
    return Look{};
  if (answer->refusal != Refusal::none) return refused(*answer);
  if (answer->subject != place.subject || !answer->value) {
    nats_.close();
    return nats_.fail(StoreError::Kind::unanswered, "expected the key's latest message");
  }
  Look seen{.last = answer->sequence};
  if (!answer->deleted) seen.item = VersionedItem{*answer->value, std::to_string(seen.last)};
  return seen;
}

StoreResult<bool> Bucket::put(const ConditionalPut& put, const std::stop_token& stop) {
  const Place place = place_of(put.key, expires_);
  std::uint64_t expected = 0;
  if (put.over != nullptr) {
    expected = parse_number<std::uint64_t>(put.over->version).value_or(0);
  } else {
    const auto seen = look(place, put.key, stop);
    if (!seen) return tl::unexpected(seen.error());
    if (seen->item) return false;
    expected = seen->last;
  }
  const bool ends = put.ttl <= Duration::zero();
  if (!ends && (expires_ || put.over == nullptr)) {
    const auto kept = before_request(keep_for(put.ttl, place, put.key, stop));
    if (!kept) return tl::unexpected(kept.error());
  }
  const auto answer =
      publish({.name = "HPUB",
               .key = put.key,
               .subject = place.subject,
               .headers = fmt::format("Nats-Expected-Last-Subject-Sequence: {}\r\n{}", expected,
                                      ends ? "KV-Operation: DEL\r\n" : ""),
               .payload = ends ? std::string_view() : put.value},
              stop);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->refusal == Refusal::changed) return false;
  if (answer->refusal != Refusal::none) return refused(*answer);
  if (answer->stream != place.stream || answer->sequence <= expected) {
    nats_.close();
    return nats_.fail(StoreError::Kind::unanswered, "expected the number of the stored message");
  }
  revision_ = answer->sequence;
  return true;
}

/// A stream that another client's request has just made may not serve its subjects yet.
StoreResult<Answer> Bucket::publish(const Connection::Request& request,
                                    const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kBetween{10};
  constexpr int kAttempts = 100;
  StoreResult<Answer> answer = nats_.ask(request, stop);
  for (int attempt = 1; attempt < kAttempts && !stop.stop_requested(); ++attempt) {
    if (answer || answer.error().code != StoreError::Code::try_again) break;
    env_.wait(nullptr, env_.now() + kBetween, stop);
    answer = nats_.ask(request, stop);
  }
  return answer;
}

StoreResult<void> Bucket::keep_for(Duration ttl, const Place& place, std::string_view key,
                                   const std::stop_token& stop) {
  const Duration wanted =
      !expires_
          ? Duration::max()
          : std::max<Duration>(kShortestAge, std::chrono::milliseconds(ceil_milliseconds(ttl)));
  // Another client may make the stream after our look, and a third may remove it.
  constexpr int kAttempts = 4;
  Answer last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (const auto age = ages_.find(place.stream); age != ages_.end() && age->second >= wanted) {
      return {};
    }
    auto answer = stream_of(place, key, stop);
    if (answer && answer->refusal == Refusal::no_stream) {
      answer = manage("STREAM.CREATE", place, key, with_age(new_bucket(place), wanted), stop);
    } else if (answer && !answer->configuration.empty() && answer->max_age < wanted) {
      auto changed = nlohmann::json::parse(answer->configuration);
      answer = manage("STREAM.UPDATE", place, key, with_age(std::move(changed), wanted), stop);
    }
    if (!answer) return tl::unexpected(answer.error());
    last = *std::move(answer);
    if (last.refusal == Refusal::stream_exists || last.refusal == Refusal::no_stream ||
        last.refusal == Refusal::subjects_overlap)
      continue;
    if (last.refusal != Refusal::none) return refused(last);
    if (last.is_made) ages_[place.stream] = last.max_age;
  }
  if (last.refusal != Refusal::none) return refused(last);
  return nats_.fail(StoreError::Kind::rejected, "the bucket keeps changing");
}

/// nats-server 2.9 ends with a panic when it is asked for a message of a stream that another
/// client's request is making.
StoreResult<Answer> Bucket::stream_of(const Place& place, std::string_view key,
                                      const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kBetween{10};
  constexpr int kLooks = 500;
  for (int look = 0; look < kLooks && !stop.stop_requested(); ++look) {
    auto answer = manage("STREAM.INFO", place, key, {}, stop);
    if (!answer || answer->refusal != Refusal::none) return answer;
    if (answer->configuration.empty()) break;
    if (answer->is_made) {
      if (ages_.size() >= kMostBuckets) ages_.clear();
      ages_[place.stream] = answer->max_age;
      return answer;
    }
    env_.wait(nullptr, env_.now() + kBetween, stop);
  }
  nats_.close();
  return nats_.fail(StoreError::Kind::unanswered, "expected the configuration of a stream");
}

StoreResult<Answer> Bucket::manage(std::string_view name, const Place& place, std::string_view key,
                                   std::string_view payload, const std::stop_token& stop) {
  return nats_.ask({.name = name,
                    .key = key,
                    .subject = fmt::format("$JS.API.{}.{}", name, place.stream),
                    .payload = payload},
                   stop);
}

}  // namespace lockbench::nats
