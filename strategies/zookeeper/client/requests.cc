#include "strategies/zookeeper/client/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "strategies/zookeeper/client/messages.h"

namespace lockbench::zookeeper {
namespace {

struct Code {
  std::int32_t code;
  std::string_view words;
  bool took_no_effect = true;
};

/// KeeperException.Code of ZooKeeper's sources.
constexpr auto kCodes = std::to_array<Code>({
    {ErrorCode::kOk, "ok"},
    {-1, "system error", false},
    {-2, "runtime inconsistency", false},
    {-3, "data inconsistency", false},
    {ErrorCode::kConnectionLoss, "connection loss", false},
    {-5, "marshalling error"},
    {-6, "unimplemented"},
    {-7, "operation timeout", false},
    {-8, "bad arguments"},
    {ErrorCode::kNoNode, "no node"},
    {-102, "no permission: not authenticated, or not in the ACL"},
    {-103, "bad version"},
    {-108, "ephemeral nodes may not have children"},
    {ErrorCode::kNodeExists, "node exists"},
    {ErrorCode::kNotEmpty, "not empty"},
    {ErrorCode::kSessionExpired, "session expired"},
    {-114, "invalid ACL"},
    {ErrorCode::kAuthFailed, "authentication failed"},
    {ErrorCode::kSessionMoved, "the session moved to another server"},
    {-119, "the server is read-only"},
    {-122, "request timeout", false},
    {ErrorCode::kNeedsSasl, "the server demands SASL"},
    {-125, "the quota is exceeded"},
    {-127, "throttled"},
});

const Code* find(std::int32_t code) {
  const auto found = std::ranges::find(kCodes, code, &Code::code);
  return found == kCodes.end() ? nullptr : &*found;
}

}  // namespace

std::string_view name_of(Request::Kind kind) {
  switch (kind) {
    case Request::Kind::make:
    case Request::Kind::make_ephemeral:
    case Request::Kind::make_sequential:
      return "create";
    case Request::Kind::children:
    case Request::Kind::watch_children:
      return "getChildren";
    case Request::Kind::look:
      return "getData";
    case Request::Kind::exists:
    case Request::Kind::watch_exists:
      return "exists";
    case Request::Kind::sync:
      return "sync";
    case Request::Kind::remove:
      return "delete";
  }
  return "?";
}

bool is_lost(std::int32_t code) {
  const Code* known = find(code);
  return known == nullptr || !known->took_no_effect;
}

bool ends_session(std::int32_t code) {
  return code == ErrorCode::kSessionExpired || code == ErrorCode::kAuthFailed ||
         code == ErrorCode::kNeedsSasl;
}

std::optional<Reply::Kind> kind_of(std::int32_t code) {
  switch (code) {
    case ErrorCode::kOk:
      return Reply::Kind::done;
    case ErrorCode::kNoNode:
      return Reply::Kind::no_node;
    case ErrorCode::kNodeExists:
      return Reply::Kind::node_exists;
    case ErrorCode::kNotEmpty:
      return Reply::Kind::not_empty;
    default:
      return std::nullopt;
  }
}

std::string describe(std::int32_t code) {
  const Code* known = find(code);
  return known == nullptr ? fmt::format("error {}", code) : std::string(known->words);
}

}  // namespace lockbench::zookeeper
