#include "strategies/redis/client/info.h"

#include <charconv>

namespace lockbench::redis {

std::string info_field(std::string_view info, std::string_view name) {
  const std::string line = "\n" + std::string(name) + ":";
  const std::size_t at = info.find(line);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + line.size();
  return std::string(info.substr(begin, info.find_first_of("\r\n", begin) - begin));
}

StoreResult<int> connected_replicas(Connection& redis, const std::stop_token& stop) {
  const auto info = redis.call({"INFO", "replication"}, stop);
  if (!info) return tl::unexpected(info.error());
  const std::string text = info_field(info->text, "connected_slaves");
  int replicas = 0;
  std::from_chars(text.data(), text.data() + text.size(), replicas);
  return replicas;
}

}  // namespace lockbench::redis
