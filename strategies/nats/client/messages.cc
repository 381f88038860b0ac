#include "strategies/nats/client/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "strategies/errors.h"
#include "strategies/number.h"
#include "strategies/store.h"
#include "strategies/url.h"

namespace lockbench::nats {
namespace {

using Json = nlohmann::json;
using ParsedMessage = tl::expected<std::optional<Message>, std::string>;

// Longer ones are not read to their end: a server must not decide how much memory a client uses.
constexpr std::size_t kLongestLine = std::size_t{16} << 10;    // an INFO names a cluster's servers
constexpr std::size_t kLongestPayload = std::size_t{1} << 20;  // the server's own default

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kBucket = "KV_lockbench";
/// No encoded name has this.
constexpr std::string_view kRecords = "_records";

tl::unexpected<std::string> unlike(std::string_view said) {
  constexpr std::size_t kShown = 60;
  return tl::unexpected(fmt::format("not a message of NATS: \"{}{}\"",
                                    printable(said.substr(0, kShown)),
                                    said.size() > kShown ? "..." : ""));
}

std::vector<std::string_view> words_of(std::string_view line, std::size_t most,
                                       const char* between = " \t") {
  std::vector<std::string_view> words;
  while (words.size() < most) {
    line.remove_prefix(std::min(line.find_first_not_of(between), line.size()));
    if (line.empty()) break;
    const std::size_t end = std::min(line.find_first_of(between), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// "MSG subject sid [reply] size" or "HMSG subject sid [reply] headers size", and that many bytes.
ParsedMessage parse_payload(std::string_view bytes, std::string_view line) {
  constexpr std::size_t kMost = 7;  // no message has as many
  const auto words = words_of(line, kMost);
  const std::size_t numbers = words.front() == "HMSG" ? 2 : 1;
  if (words.size() != 3 + numbers && words.size() != 4 + numbers) return unlike(line);
  const auto size = parse_number<std::size_t>(words.back());
  const auto headers = numbers == 2 ? parse_number<std::size_t>(words[words.size() - 2])
                                    : std::optional<std::size_t>(0);
  if (!size || !headers || *headers > *size) return unlike(line);
  if (*size > kLongestPayload) {
    return tl::unexpected(fmt::format("a message of {} bytes is too long", *size));
  }
  const std::size_t begin = line.size() + kLineEnd.size(), end = begin + *size;
  if (bytes.size() < end + kLineEnd.size()) return std::nullopt;
  if (bytes.substr(end, kLineEnd.size()) != kLineEnd) return unlike(bytes.substr(end));
  return Message{.kind = Message::Kind::payload,
                 .subject = std::string(words[1]),
                 .reply = words.size() == 4 + numbers ? std::string(words[3]) : std::string(),
                 .headers = std::string(bytes.substr(begin, *headers)),
                 .text = std::string(bytes.substr(begin + *headers, *size - *headers)),
                 .size = end + kLineEnd.size()};
}

std::optional<Json> object_in(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

/// The member of this name; a value that is no object has none.
const Json& member_of(const Json& json, const char* name) {
  static const Json none;
  const auto found = json.find(name);
  return json.is_object() && found != json.end() ? *found : none;
}

std::string text_of(const Json& json, const char* name) {
  const Json& member = member_of(json, name);
  return member.is_string() ? member.get<std::string>() : std::string();
}

std::uint64_t number_of(const Json& json, const char* name) {
  const Json& member = member_of(json, name);
  return member.is_number_unsigned() ? member.get<std::uint64_t>() : 0;
}

bool is_true(const Json& json, const char* name) {
  const Json& member = member_of(json, name);
  return member.is_boolean() && member.get<bool>();
}

std::optional<std::string> decode_base64(const std::string& text) {
  constexpr std::size_t kGroup = 4, kBytes = 3;
  if (text.size() > kLongestPayload || text.size() % kGroup != 0) return std::nullopt;
  const std::size_t end = text.find_last_not_of('=') + 1;
  if (text.size() - end >= kBytes) return std::nullopt;
  std::vector<unsigned char> bytes(text.size() / kGroup * kBytes + 1);
  const std::vector<unsigned char> encoded(text.begin(), text.end());
  const int decoded =
      EVP_DecodeBlock(bytes.data(), encoded.data(), static_cast<int>(encoded.size()));
  // White space, which it skips, would make it shorter.
  if (decoded != static_cast<int>(bytes.size() - 1)) return std::nullopt;
  return std::string(bytes.begin(), bytes.end() - 1 - static_cast<long>(text.size() - end));
}

/// False if it is not a message.
bool read_message(const Json& message, Answer& answer) {
  const auto headers = decode_base64(text_of(message, "hdrs"));
  answer.value = decode_base64(text_of(message, "data"));
  answer.subject = text_of(message, "subject");
  answer.sequence = number_of(message, "seq");
  if (!headers || !answer.value || answer.sequence == 0) return false;
  answer.deleted = is_deletion(*headers);
  return true;
}

std::vector<Answer::Stream> read_streams(const Json& streams) {
  std::vector<Answer::Stream> all;
  if (!streams.is_array()) return all;
  for (const Json& stream : streams) {
    // An empty stream's last message is of the year 1.
    all.push_back({.name = text_of(member_of(stream, "config"), "name"),
                   .last_used = std::max(text_of(stream, "created"),
                                         text_of(member_of(stream, "state"), "last_ts"))});
  }
  return all;
}

/// Letters, digits and hyphens only, and `mark` with two hex digits for any other character.
std::string encoded(std::string_view text, char mark) {
  std::string code;
  for (const char c : text) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (kept || c == '-') {
      code += c;
    } else {
      code += fmt::format("{}{:02X}", mark, static_cast<unsigned char>(c));
    }
  }
  return code;
}

/// A part of a bucket's name: encoded, or the beginning of its SHA-256 if that is too long.
std::string part_of_name(std::string_view text) {
  constexpr std::size_t kLongest = 100;  // a stream's name has room for 255 characters
  constexpr std::size_t kBytes = 16;
  std::string code = encoded(text, '_');
  if (code.size() <= kLongest) return code;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + kBytes, ""));
}

/// The rest of the bucket's name.
std::string bucket_of(std::string_view key) {
  const std::string_view run = run_of_key(key);
  if (run.empty()) return {};
  std::string name = "-" + part_of_name(run);
  if (is_run_id(run)) return name;
  const std::size_t begin = key.find('{');
  if (begin == std::string_view::npos) return name;
  const std::string_view tag = key.substr(begin + 1, key.find('}', begin) - begin - 1);
  return name + "-" + part_of_name(tag);
}

}  // namespace

tl::expected<std::optional<Message>, std::string> parse_message(std::string_view bytes) {
  using Form = Message::Kind;
  const std::size_t end = bytes.substr(0, kLongestLine).find(kLineEnd);
  if (end == std::string_view::npos) {
    if (bytes.size() >= kLongestLine) return unlike(bytes);
    return std::nullopt;
  }
  const std::string_view line = bytes.substr(0, end);
  if (line.starts_with("MSG ") || line.starts_with("HMSG ")) return parse_payload(bytes, line);
  constexpr std::array<std::pair<std::string_view, Form>, 3> kWords{
      {{"PING", Form::ping}, {"PONG", Form::pong}, {"+OK", Form::ok}}};
  for (const auto& [word, kind] : kWords) {
    if (line == word) return Message{.kind = kind, .size = end + kLineEnd.size()};
  }
  constexpr std::array<std::pair<std::string_view, Form>, 2> kTexts{
      {{"INFO ", Form::info}, {"-ERR ", Form::error}}};
  for (const auto& [word, kind] : kTexts) {
    if (!line.starts_with(word)) continue;
    return Message{
        .kind = kind, .text = std::string(line.substr(word.size())), .size = end + kLineEnd.size()};
  }
  return unlike(line);
}

std::optional<ServerInfo> parse_info(std::string_view json) {
  const auto info = object_in(json);
  if (!info) return std::nullopt;
  ServerInfo server{.version = printable(text_of(*info, "version")),
                    .id = printable(text_of(*info, "server_id")),
                    .requires_tls = is_true(*info, "tls_required")};
  server.tls = server.requires_tls || is_true(*info, "tls_available");
  if (server.version.empty() || server.id.empty()) return std::nullopt;
  return server;
}

bool is_deletion(std::string_view headers) {
  return headers.find("KV-Operation: DEL\r\n") != std::string_view::npos ||
         headers.find("KV-Operation: PURGE\r\n") != std::string_view::npos;
}

/// "$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.NUMBER.TIME.PENDING"; some servers put a domain and
/// an account before the stream, and more behind.
std::optional<Delivery> parse_delivery(std::string_view reply) {
  constexpr std::size_t kShort = 9, kLong = 11, kMost = 12, kInShort = 5, kInLong = 7;
  const auto words = words_of(reply, kMost, ".");
  if (words.size() != kShort && words.size() < kLong) return std::nullopt;
  const std::size_t at = words.size() == kShort ? kInShort : kInLong;
  const auto sequence = parse_number<std::uint64_t>(words[at]);
  const auto stored_at = parse_number<std::int64_t>(words[at + 2]);
  const auto pending = parse_number<std::uint64_t>(words[at + 3]);
  const bool fits = sequence && stored_at && pending && *sequence > 0 && *stored_at > 0;
  if (!fits || words[0] != "$JS" || words[1] != "ACK") return std::nullopt;
  return Delivery{
      .sequence = *sequence, .stored_at = WallTime(Duration(*stored_at)), .pending = *pending};
}

tl::expected<Answer, std::string> parse_answer(std::string_view text) {
  const auto json = object_in(text);
  if (!json) return tl::unexpected<std::string>("its answer is not JSON");
  Answer answer{.stream = text_of(*json, "stream"), .sequence = number_of(*json, "seq")};
  if (json->contains("error")) {
    const Json& error = member_of(*json, "error");
    const std::uint64_t code = number_of(error, "err_code");
    answer.why = printable(text_of(error, "description"));
    if (code == 0 || code > 0xffffffff)
      return tl::unexpected<std::string>("an error without its number");
    // Of a bucket with replicas, NATS 2.11: another message for the subject is under way.
    constexpr std::uint64_t kChanging = 10164;
    answer.refusal = code == kChanging ? Refusal::changed : static_cast<Refusal>(code);
    return answer;
  }
  if (json->contains("message") && !read_message(member_of(*json, "message"), answer)) {
    return tl::unexpected<std::string>("its answer is not a message");
  }
  if (const Json& config = member_of(*json, "config"); config.is_object()) {
    const auto most = static_cast<std::uint64_t>(kLongestDuration.count());
    const std::uint64_t age = number_of(config, "max_age");
    answer.configuration = config.dump(-1, ' ', false, Json::error_handler_t::replace);
    // Go's zero time, as long as the stream is being made.
    answer.is_made = !text_of(*json, "created").starts_with("0001-");
    answer.sequence = number_of(member_of(*json, "state"), "last_seq");
    answer.max_age = age == 0 ? Duration::max() : Duration(std::min(age, most));
  }
  answer.purged = number_of(*json, "purged");
  // It may have sent some of them already.
  answer.pending =
      number_of(*json, "num_pending") + number_of(member_of(*json, "delivered"), "consumer_seq");
  answer.streams = read_streams(member_of(*json, "streams"));
  answer.all_streams = number_of(*json, "total");
  return answer;
}

Place place_of(std::string_view key, bool expires) {
  const std::string bucket = fmt::format("lockbench{}{}", bucket_of(key), expires ? "" : kRecords);
  return {.stream = "KV_" + bucket, .subject = fmt::format("$KV.{}.{}", bucket, encoded(key, '='))};
}

std::string_view run_of_stream(std::string_view stream) {
  if (!stream.starts_with(kBucket)) return {};
  stream.remove_prefix(kBucket.size());
  if (stream.ends_with(kRecords)) stream.remove_suffix(kRecords.size());
  return stream.starts_with('-') ? stream.substr(1) : std::string_view();
}

}  // namespace lockbench::nats
