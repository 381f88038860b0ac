#include "strategies/zookeeper/client/requests.h"

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

}  // namespace lockbench::zookeeper
