#include "strategies/zookeeper/client/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "strategies/number.h"
#include "strategies/store.h"

namespace lockbench::zookeeper {
namespace {

struct Meaning {
  Code code;
  std::string_view words;
  bool took_no_effect = true;
};

constexpr auto kMeanings = std::to_array<Meaning>({
    {Code::ok, "ok"},
    {Code{-1}, "system error", false},
    {Code{-2}, "runtime inconsistency", false},
    {Code{-3}, "data inconsistency", false},
    {Code::connection_loss, "connection loss", false},
    {Code{-5}, "marshalling error"},
    {Code{-6}, "unimplemented"},
    {Code{-7}, "operation timeout", false},
    {Code{-8}, "bad arguments"},
    {Code::no_node, "no node"},
    {Code{-102}, "no permission: not authenticated, or not in the ACL"},
    {Code{-103}, "bad version"},
    {Code{-108}, "ephemeral nodes may not have children"},
    {Code::node_exists, "node exists"},
    {Code::not_empty, "not empty"},
    {Code::session_expired, "session expired"},
    {Code{-114}, "invalid ACL"},
    {Code::auth_failed, "authentication failed"},
    {Code::session_moved, "the session moved to another server"},
    {Code{-119}, "the server is read-only"},
    {Code{-122}, "request timeout", false},
    {Code::needs_sasl, "the server demands SASL"},
    {Code{-125}, "the quota is exceeded"},
    {Code{-127}, "throttled"},
});

const Meaning* find(Code code) {
  const auto found = std::ranges::find(kMeanings, code, &Meaning::code);
  return found == kMeanings.end() ? nullptr : &*found;
}

using namespace std::string_view_literals;

/// Operations other than requests.
constexpr std::int32_t kPing = 11, kAuth = 100, kSetWatches = 101, kCloseSession = -11;

/// The form of a request: its operation, the path, and the fields of the operation.
struct Form {
  Request::Kind kind;
  std::string_view name;
  std::int32_t operation;
  std::optional<std::int32_t> mode{};  ///< of a new node
  std::optional<bool> watch{};
};
constexpr Form kForms[] = {
    {.kind = Request::Kind::make, .name = "create", .operation = 19, .mode = 4},
    {.kind = Request::Kind::make_ephemeral, .name = "create", .operation = 15, .mode = 1},
    {.kind = Request::Kind::make_sequential, .name = "create", .operation = 15, .mode = 3},
    {.kind = Request::Kind::children, .name = "getChildren", .operation = 8, .watch = false},
    {.kind = Request::Kind::watch_children, .name = "getChildren", .operation = 8, .watch = true},
    {.kind = Request::Kind::watch_and_count,
     .name = "getChildren2",
     .operation = 12,
     .watch = true},
    {.kind = Request::Kind::look, .name = "getData", .operation = 4, .watch = true},
    {.kind = Request::Kind::exists, .name = "exists", .operation = 3, .watch = false},
    {.kind = Request::Kind::watch_exists, .name = "exists", .operation = 3, .watch = true},
    {.kind = Request::Kind::sync, .name = "sync", .operation = 9},
    {.kind = Request::Kind::remove, .name = "delete", .operation = 2},
};

const Form& form_of(Request::Kind kind) { return *std::ranges::find(kForms, kind, &Form::kind); }

constexpr std::int32_t kAnyVersion = -1, kAllRights = 31;

tl::unexpected<std::string> wrong(std::string_view what) {
  return tl::unexpected(fmt::format("{} that does not make sense", what));
}

std::string below(std::string_view chroot, std::string_view path) {
  return path == "/" && !chroot.empty() ? std::string(chroot) : fmt::format("{}{}", chroot, path);
}

/// The path below `chroot`; nothing if it is elsewhere.
std::optional<std::string> without(std::string_view chroot, std::string_view path) {
  if (!chroot.empty() && path == chroot) return "/";
  if (!path.starts_with(chroot)) return std::nullopt;
  path.remove_prefix(chroot.size());
  if (!path.starts_with('/')) return std::nullopt;
  return std::string(path);
}

/// A node's metadata.
void read_stat(Reader& from, Reply& reply) {
  reply.created_by = from.int64();
  from.int64();  // the transaction that changed it
  reply.made_at_ms = from.int64();
  from.int64();  // when it was changed
  from.int32();  // the version of its data
  const std::int64_t made_and_deleted = from.int32();
  from.int32();  // the version of its ACL
  reply.owner = from.int64();
  from.int32();  // the size of its data
  const std::int64_t there = from.int32();
  from.int64();  // the transaction that changed its children
  reply.children_made =
      static_cast<std::uint64_t>(std::max<std::int64_t>(made_and_deleted + there, 0)) / 2;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos;
}

/// Whether the path of a new node fits its request.
bool fits(const Request& asked, std::string_view made) {
  if (asked.kind != Request::Kind::make_sequential) return made == asked.path;
  if (!made.starts_with(asked.path)) return false;
  const std::string_view added = made.substr(asked.path.size());
  return is_name(added) && sequence_of(added).has_value();
}

constexpr std::string_view kRoot = "/lockbench";

/// As a valid name of one node.
std::string encoded(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool plain = c > ' ' && c < 0x7f && c != '/' && c != '%';
    if (plain) {
      name += c;
    } else {
      name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  // ZooKeeper does not allow these names.
  if (name == "." || name == "..") return "%" + name;
  return name.empty() ? "%" : name;
}

}  // namespace

std::string_view Reader::take(std::size_t size) {
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    rest_ = {};
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t Reader::number(std::size_t size) {
  std::uint64_t number = 0;
  for (const char byte : take(size)) {
    number = (number << 8) | static_cast<unsigned char>(byte);
  }
  return number;
}

std::size_t Reader::length() {
  const std::int32_t length = int32();
  if (length < -1) ok_ = false;
  return ok_ && length > 0 ? static_cast<std::size_t>(length) : 0;
}

std::string_view Reader::text() { return take(length()); }

std::vector<std::string> Reader::texts() {
  constexpr std::size_t kShortest = sizeof(std::int32_t);
  const std::size_t count = length();
  std::vector<std::string> texts;
  // Checked before allocating anything.
  if (count > rest_.size() / kShortest) ok_ = false;
  if (!ok_) return texts;
  texts.reserve(count);
  for (std::size_t i = 0; i < count && ok_; ++i) texts.emplace_back(text());
  return texts;
}

bool is_lost(Code code) {
  const Meaning* known = find(code);
  return known == nullptr || !known->took_no_effect;
}

bool ends_session(Code code) {
  return code == Code::session_expired || code == Code::auth_failed || code == Code::needs_sasl;
}

bool is_usual(Code code) {
  return code == Code::ok || code == Code::no_node || code == Code::node_exists ||
         code == Code::not_empty;
}

std::string describe(Code code) {
  const Meaning* known = find(code);
  return known == nullptr ? fmt::format("error {}", static_cast<std::int32_t>(code))
                          : std::string(known->words);
}

std::string greet(const Identity& session, Duration timeout) {
  constexpr std::int32_t kVersion = 0;
  const auto ms =
      std::min<std::int64_t>(ceil_milliseconds(timeout), std::numeric_limits<std::int32_t>::max());
  static constexpr auto kNoPassword = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv;
  return Writer()
      .put(kVersion)
      .put(session.seen)
      .put(static_cast<std::int32_t>(ms))
      .put(session.id)
      .put(session.id == 0 ? kNoPassword : std::string_view(session.password))
      .put(false)  // a server without a quorum will not do
      .framed();
}

std::string ping() { return Writer().put(Xid::kPing).put(kPing).framed(); }

std::string authenticate(std::string_view user, std::string_view password) {
  constexpr std::int32_t kType = 0;
  const std::string secret = fmt::format("{}:{}", user, password);
  return Writer()
      .put(Xid::kAuth)
      .put(kAuth)
      .put(kType)
      .put("digest"sv)
      .put(std::string_view(secret))
      .framed();
}

std::string set_watches(std::int64_t seen, std::string_view chroot,
                        std::span<const std::string> paths) {
  constexpr std::int32_t kNone = 0;
  Writer message;
  message.put(Xid::kSetWatches).put(kSetWatches).put(seen);
  message.put(static_cast<std::int32_t>(paths.size()));
  for (const std::string& path : paths) message.put(std::string_view(below(chroot, path)));
  // No watches of absent nodes, and none of lists of children.
  return message.put(kNone).put(kNone).framed();
}

std::string end_session(std::int32_t xid) { return Writer().put(xid).put(kCloseSession).framed(); }

std::string write(std::int32_t xid, const Request& request, std::string_view chroot,
                  bool private_nodes) {
  const Form& form = form_of(request.kind);
  Writer message;
  message.put(xid).put(form.operation).put(std::string_view(below(chroot, request.path)));
  if (form.mode) {
    message.put(""sv);  // no data
    message.put(std::int32_t{1}).put(kAllRights);
    message.put(private_nodes ? "auth"sv : "world"sv).put(private_nodes ? ""sv : "anyone"sv);
    message.put(*form.mode);
  }
  if (form.watch) message.put(*form.watch);
  if (request.kind == Request::Kind::remove) message.put(kAnyVersion);
  return message.framed();
}

std::string_view name_of(Request::Kind kind) { return form_of(kind).name; }

std::string_view name_of_operation(std::int32_t operation) {
  const auto* const form = std::ranges::find(kForms, operation, &Form::operation);
  if (form != std::end(kForms)) return form->name;
  switch (operation) {
    case kPing:
      return "ping";
    case kAuth:
      return "auth";
    case kSetWatches:
      return "setWatches";
    case kCloseSession:
      return "closeSession";
    default:
      return "an unknown request";
  }
}

Parsed<Greeting> read_greeting(std::string_view packet) {
  Reader from(packet);
  const std::int32_t version = from.int32();
  Greeting greeting;
  greeting.timeout = std::chrono::milliseconds(from.int32());
  greeting.id = from.int64();
  greeting.password = from.text();
  // Servers before 3.4 do not say.
  if (from.left() > 0) greeting.read_only = from.boolean();
  if (!from.done() || version != 0) return wrong("it sent a greeting");
  if (greeting.timeout > Duration::zero() && greeting.id == 0) return wrong("it began a session");
  return greeting;
}

Parsed<Header> read_header(Reader& from) {
  const Header header{.xid = from.int32(), .transaction = from.int64(), .code = Code{from.int32()}};
  if (!from.ok()) return wrong("it sent a header");
  return header;
}

Parsed<NodeEvent> read_event(Reader& from, std::string_view chroot) {
  constexpr std::int32_t kMade = 1, kDeleted = 2, kLast = 7;
  const std::int32_t type = from.int32();
  from.int32();  // the session's state: the connection itself shows it
  const auto path = without(chroot, from.text());
  if (!from.done() || type < kMade || type > kLast || !path) return wrong("it sent an event");
  return NodeEvent{.deleted = type == kDeleted, .path = *path};
}

Parsed<Reply> read_reply(const Request& request, std::string_view chroot, Reader& from) {
  Reply reply;
  switch (request.kind) {
    case Request::Kind::make:
    case Request::Kind::make_ephemeral:
    case Request::Kind::make_sequential: {
      const auto path = without(chroot, from.text());
      read_stat(from, reply);
      if (!path || !fits(request, *path)) return wrong("it made a node");
      reply.path = *path;
      break;
    }
    case Request::Kind::children:
    case Request::Kind::watch_children:
    case Request::Kind::watch_and_count:
      reply.children = from.texts();
      if (!std::ranges::all_of(reply.children, is_name)) return wrong("it sent a list");
      if (request.kind == Request::Kind::watch_and_count) read_stat(from, reply);
      break;
    case Request::Kind::look:
      from.text();  // its data
      [[fallthrough]];
    case Request::Kind::exists:
    case Request::Kind::watch_exists:
      read_stat(from, reply);
      break;
    case Request::Kind::sync:
      if (without(chroot, from.text()) != request.path) return wrong("it synchronised a path");
      break;
    case Request::Kind::remove:
      break;
  }
  if (!from.done()) return wrong(fmt::format("it sent an answer to {}", name_of(request.kind)));
  return reply;
}

std::optional<std::string> version_in(std::string_view answer) {
  constexpr std::string_view kLabel = "Zookeeper version: ";
  const std::size_t label = answer.find(kLabel);
  if (label == std::string_view::npos) return std::nullopt;
  const std::string_view rest = answer.substr(label + kLabel.size());
  const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
  if (version.empty()) return std::nullopt;
  return std::string(version);
}

std::string run_path(std::string_view run_id) {
  return fmt::format("{}/{}", kRoot, encoded(run_id));
}

std::string node_of_key(std::string_view key) {
  const std::string_view run = run_of_key(key);
  if (run.empty()) return fmt::format("{}/{}", run_path("-"), encoded(key));
  return fmt::format("{}/{}", run_path(run),
                     encoded(key.substr(key.find(':', key.find(':') + 1) + 1)));
}

std::string_view parent_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

std::optional<std::int32_t> sequence_of(std::string_view name) {
  constexpr std::size_t kDigits = 10;
  if (name.size() < kDigits) return std::nullopt;
  const std::string_view before = name.substr(0, name.size() - kDigits);
  // Written with %010d, so that the sign of a negative number is one of the ten, or before them.
  const bool has_sign = before.ends_with("--");
  return parse_number<std::int32_t>(name.substr(before.size() - (has_sign ? 1 : 0)));
}

bool comes_before(std::int32_t one, std::int32_t other) {
  const auto ahead = static_cast<std::uint32_t>(one) - static_cast<std::uint32_t>(other);
  return static_cast<std::int32_t>(ahead) < 0;
}

Place place_among(std::span<const std::string> children, std::string_view own) {
  Place place;
  const auto mine = sequence_of(own);
  if (!mine) return place;
  std::optional<std::int32_t> nearest;
  for (const std::string& child : children) {
    if (child == own) place.there = true;
    const auto sequence = sequence_of(child);
    if (!sequence || !comes_before(*sequence, *mine)) continue;
    if (nearest && !comes_before(*nearest, *sequence)) continue;
    nearest = sequence;
    place.ahead = child;
  }
  return place;
}

}  // namespace lockbench::zookeeper
