#include "strategies/nats/client/messages.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

void require_printable(std::string_view text) {
  for (const char c : text) require(static_cast<unsigned char>(c) >= ' ');
}

/// As messages, and as the JSON in one.
void read_messages_of_nats(std::string_view bytes) {
  const auto message = nats::parse_message(bytes);
  if (!message) {
    require_printable(message.error());
  } else if (*message) {
    require((*message)->size > 0 && (*message)->size <= bytes.size());
    require((*message)->headers.size() + (*message)->text.size() <= (*message)->size);
  }
  if (const auto info = nats::parse_info(bytes)) require_printable(info->version + info->id);
  if (const auto delivery = nats::parse_delivery(bytes)) require(delivery->sequence > 0);
  const auto answer = nats::parse_answer(bytes);
  require_printable(answer ? answer->why : answer.error());
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(nats, lockbench::fuzz::read_messages_of_nats)
