#include "cli/options/text.h"
#include "exporter/addresses.h"
#include "strategies/store.h"
#include "strategies/url.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

void read_urls(std::string_view bytes) {
  const std::string text(bytes);
  for (const StoreKind* kind : store_kinds()) {
    if (!kind->not_built.empty()) continue;
    const auto shown = kind->display(text);
    if (!shown) {
      require(shown.error().find('\n') == std::string::npos);
      continue;
    }
    if (kind->secrecy != nullptr) static_cast<void>(kind->secrecy(text));
  }
  static_cast<void>(parse_tls_query(text));
  static_cast<void>(exporter::parse_push_target(text));
  if (const auto address = exporter::parse_listen_address(text)) {
    require(exporter::parse_listen_address(address->to_string()).has_value());
  }
  require(cli::presentable(text).find('\n') == std::string::npos);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(urls, lockbench::fuzz::read_urls)
