#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockbench::test {

/// Stands for the subject that a request wants its answer on.
inline constexpr std::string_view kInbox = "INBOX";

inline std::string nats_message(std::string_view text) {
  return fmt::format("MSG {} 1 {}\r\n{}\r\n", kInbox, text.size(), text);
}

inline std::string base64_of(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string encoded;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t byte = i; byte < i + 3; ++byte) {
      group = group << 8 | (byte < text.size() ? static_cast<unsigned char>(text[byte]) : 0U);
    }
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_there = i + digit <= text.size();
      encoded += is_there ? kDigits[group >> (18 - 6 * digit) & 63U] : '=';
    }
  }
  return encoded;
}

/// JetStream's answer about the latest message of a subject.
inline std::string nats_entry(std::string_view subject, std::uint64_t sequence,
                              std::string_view headers, std::string_view value) {
  return fmt::format(R"({{"message":{{"subject":"{}","seq":{},"hdrs":"{}","data":"{}"}}}})",
                     subject, sequence, base64_of(fmt::format("NATS/1.0\r\n{}\r\n", headers)),
                     base64_of(value));
}

inline std::string nats_error(int number) {
  return fmt::format(R"({{"error":{{"code":400,"err_code":{},"description":"no"}},"seq":0}})",
                     number);
}

/// Answers of JetStream, and texts that are none, about this stream and subject.
inline std::vector<std::string> nats_answers(const std::string& stream,
                                             const std::string& subject) {
  return {R"({"stream":")" + stream + R"(", "seq":9})",
          R"({"stream":")" + stream + R"(", "seq":0})",
          R"({"stream":")" + stream + R"("})",
          R"({"stream":")" + stream + R"(", "seq":-1})",
          R"({"stream":")" + stream + R"(", "seq":"9"})",
          R"({"stream":")" + stream + R"(", "seq":99999999999999999999})",
          R"({"stream":"other", "seq":9})",
          R"({"seq":9})",
          nats_error(10071),
          nats_error(10164),
          nats_error(10059),
          nats_error(10058),
          nats_error(10037),
          nats_error(1),
          nats_error(0),
          R"({"error":{}})",
          R"({"error":null,"stream":")" + stream + R"(","seq":9})",
          R"({"error":{"err_code":4294977367}})",
          nats_entry(subject, 4, "", "other"),
          nats_entry(subject, 4, "KV-Operation: DEL\r\n", ""),
          nats_entry(subject, 4, "KV-Operation: PURGE\r\n", ""),
          nats_entry(subject, 0, "", "other"),
          nats_entry("other", 4, "", "other"),
          R"({"message":{"subject":")" + subject + R"(","seq":4,"data":"%%%%"}})",
          R"({"message":{"subject":")" + subject + R"(","seq":4,"data":"YQ"}})",
          R"({"message":{"subject":")" + subject + R"(","seq":4,"data":"===="}})",
          R"({"message":7})",
          R"({"config":{"max_age":0}})",
          R"({"config":{"max_age":99999999999999999999}})",
          R"({"config":{"max_age":600000000000}})",
          R"({"config":[]})",
          R"({"streams":[7,{},null,{"config":{"name":7}}],"total":-3})",
          R"({"streams":{}})",
          "{}",
          "[]",
          "null",
          "",
          "{",
          std::string("{}\0", 3),
          std::string(200, '['),
          "\x1b[31m"};
}

/// What a server may send in place of the right answer.
inline std::vector<std::string> nats_replies(const std::string& stream,
                                             const std::string& subject) {
  std::vector<std::string> all = {"PING\r\n",
                                  "PONG\r\n",
                                  "+OK\r\n",
                                  "INFO {}\r\n",
                                  "-ERR 'Permissions Violation for Publish to \"x\"'\r\n",
                                  "-ERR 'Stale Connection'\r\n",
                                  "-ERR \r\n",
                                  "HMSG INBOX 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
                                  "HMSG INBOX 1  16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
                                  "HMSG INBOX 1 20 16\r\nNATS/1.0 503\r\n\r\n\r\n",
                                  "HMSG INBOX 1 16\r\nNATS/1.0 503\r\n\r\n\r\n",
                                  "MSG other 1 2\r\n{}\r\n",
                                  "MSG INBOX 1 reply 2\r\n{}\r\n",
                                  "MSG INBOX 1 a reply 2\r\n{}\r\n",
                                  "MSG INBOX 1 1\r\n{}\r\n",
                                  "MSG INBOX 1 3\r\n{}\r\n",
                                  "MSG INBOX 1 -1\r\n{}\r\n",
                                  "MSG INBOX 1 1048577\r\n",
                                  "MSG INBOX 1 99999999999999999999\r\n",
                                  "MSG INBOX 1\r\n",
                                  "MSG \r\n",
                                  "MSG\r\n",
                                  "msg INBOX 1 2\r\n{}\r\n",
                                  "\r\n",
                                  "\x15\x03\x01",
                                  "HTTP/1.1 400 Bad Request\r\n"};
  for (const std::string& answer : nats_answers(stream, subject)) {
    all.push_back(nats_message(answer));
  }
  return all;
}

}  // namespace lockbench::test
