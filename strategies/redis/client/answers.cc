#include "strategies/redis/client/answers.h"

#include <fmt/format.h>

#include <limits>

namespace lockbench::redis {
namespace {

std::string describe(const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      return "nil";
    case Reply::Type::status:
      return "the status " + printable(reply.text);
    case Reply::Type::error:
      return "the error " + printable(reply.text);
    case Reply::Type::integer:
      return fmt::format("the integer {}", reply.integer);
    case Reply::Type::string:
      return fmt::format("text of {} bytes", reply.text.size());
    case Reply::Type::array:
      return fmt::format("an array of {}", reply.elements.size());
  }
  return "something else";
}

bool is_text(const Reply& reply) {
  return reply.type == Reply::Type::string || reply.type == Reply::Type::status;
}

std::optional<bool> read_ok(const Reply& reply) {
  return reply.is_text("OK") ? std::optional(true) : std::nullopt;
}

std::optional<std::string> read_text(const Reply& reply) {
  return is_text(reply) ? std::optional(reply.text) : std::nullopt;
}

}  // namespace

std::string describe_answer(std::string_view name, const Reply& reply, std::string_view expected) {
  return fmt::format("it answered {} with {}, expected {}", name, describe(reply), expected);
}

std::optional<std::int64_t> number_in(const Reply& reply, std::int64_t least, std::int64_t most) {
  const bool fits =
      reply.type == Reply::Type::integer && reply.integer >= least && reply.integer <= most;
  return fits ? std::optional(reply.integer) : std::nullopt;
}

const Form<bool> kOk{"OK", read_ok};

const Form<bool> kOkOrNil{"OK or nil", [](const Reply& reply) {
                            return reply.is_nil() ? std::optional(false) : read_ok(reply);
                          }};

const Form<bool> kFlag{"0 or 1", [](const Reply& reply) -> std::optional<bool> {
                         const auto flag = number_in(reply, 0, 1);
                         if (!flag) return std::nullopt;
                         return *flag == 1;
                       }};

const Form<std::int64_t> kCount{"a count", [](const Reply& reply) {
                                  return number_in(reply, 0,
                                                   std::numeric_limits<std::int32_t>::max());
                                }};

const Form<std::string> kText{"text", read_text};

const Form<std::optional<std::string>> kTextOrNil{
    "text or nil", [](const Reply& reply) -> std::optional<std::optional<std::string>> {
      if (reply.is_nil()) return std::optional<std::string>();
      if (!is_text(reply)) return std::nullopt;
      return std::optional(reply.text);
    }};

const Form<std::optional<Duration>> kNilOrTimeLeft{
    "nil or milliseconds", [](const Reply& reply) -> std::optional<std::optional<Duration>> {
      if (reply.is_nil()) return std::optional<Duration>();
      const auto left = number_in(reply, -1, ceil_milliseconds(kLongestDuration));
      if (!left) return std::nullopt;
      return std::optional(*left < 0 ? Duration::max()
                                     : Duration(std::chrono::milliseconds(*left)));
    }};

tl::expected<Push, std::string> read_push(const Reply& reply) {
  if (reply.type == Reply::Type::error) return tl::unexpected(printable(reply.text));
  const bool triple = reply.type == Reply::Type::array && reply.elements.size() == 3;
  if (triple && reply.elements[1].type == Reply::Type::string) {
    const Reply& kind = reply.elements[0];
    const std::string& channel = reply.elements[1].text;
    if (kind.is_text("message")) return Push{Push::Kind::message, channel};
    if (kind.is_text("subscribe")) return Push{Push::Kind::subscribed, channel};
    if (kind.is_text("unsubscribe")) return Push{Push::Kind::unsubscribed, channel};
  }
  return tl::unexpected(fmt::format("it sent {}, expected a message", describe(reply)));
}

}  // namespace lockbench::redis
