#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct _zhandle;  // NOLINT(bugprone-reserved-identifier): the library's own

namespace lockbench::test {

/// Looks into a ZooKeeper past the code under test, by the library's blocking calls. For one
/// thread. Throws std::runtime_error where it cannot.
class ZookeeperProbe {
 public:
  explicit ZookeeperProbe(std::uint16_t port);

  /// Empty for a node that is not there.
  std::vector<std::string> children(const std::string& path);
  struct Facts {
    bool there = false;
    std::int64_t owner = 0;  ///< of an ephemeral node
  };
  Facts look(const std::string& path);
  void make(const std::string& path);
  /// An ephemeral sequential node whose name begins so; the path that it got.
  std::string make_contender(const std::string& path);
  /// False if it was not there.
  bool remove(const std::string& path);
  void remove_tree(const std::string& path);

  /// Ends another's session, by joining it and closing it. Its owner must not be connected.
  static void end_session(std::uint16_t port, std::int64_t session);

 private:
  struct Close {
    void operator()(_zhandle* handle) const;
  };
  std::unique_ptr<_zhandle, Close> handle_;
};

/// The answer to one of ZooKeeper's commands of four letters, such as "cons".
std::string four_letters(std::uint16_t port, const std::string& letters);

}  // namespace lockbench::test
