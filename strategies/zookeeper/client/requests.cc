#include "strategies/zookeeper/client/requests.h"

#include <zookeeper/zookeeper.h>

namespace lockbench::zookeeper {

std::string_view name_of(Request::Kind kind) {
  switch (kind) {
    case Request::Kind::make:
    case Request::Kind::make_ephemeral:
    case Request::Kind::make_sequential:
      return "create";
    case Request::Kind::children:
      return "getChildren";
    case Request::Kind::look:
      return "getData";
    case Request::Kind::exists:
      return "exists";
    case Request::Kind::remove:
      return "delete";
  }
  return "?";
}

bool is_lost(int code) {
  return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZCLOSING ||
         code == ZSYSTEMERROR;
}

bool ends_session(int code) {
  return code == ZSESSIONEXPIRED || code == ZINVALIDSTATE || code == ZAUTHFAILED;
}

bool came_from_server(int code) {
  return code == ZOK || (code <= ZAPIERROR && code != ZCLOSING && !ends_session(code));
}

std::optional<Reply::Kind> kind_of(int code) {
  switch (code) {
    case ZOK:
      return Reply::Kind::done;
    case ZNONODE:
      return Reply::Kind::no_node;
    case ZNODEEXISTS:
      return Reply::Kind::node_exists;
    case ZNOTEMPTY:
      return Reply::Kind::not_empty;
    default:
      return std::nullopt;
  }
}

}  // namespace lockbench::zookeeper
