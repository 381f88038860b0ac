#include "loadgen/fibers/virtual_time.h"

#include <exception>
#include <memory>
#include <utility>

#include "loadgen/fibers/scheduler.h"
#include "loadgen/fibers/stacks.h"

namespace lockbench::fibers {
namespace {

// The body composes a whole run and reads its result, which goes deeper than a client.
constexpr StackSize kStack{std::size_t{512} * 1024};

}  // namespace

tl::expected<void, std::string> on_virtual_time(const std::function<void()>& body) {
  Stacks stacks(kStack);
  auto scheduler = Scheduler::make(stacks, Time::virtual_time);
  if (!scheduler) return tl::unexpected(scheduler.error());
  std::exception_ptr thrown;
  auto task = (*scheduler)
                  ->start(
                      [&](const std::stop_token&) {
                        try {
                          body();
                        } catch (...) {
                          thrown = std::current_exception();
                        }
                      },
                      [](const std::string& /*why*/) {});
  if (!task) return tl::unexpected(task.error());
  (*scheduler)->finish();
  (*scheduler)->run();
  if (thrown) std::rethrow_exception(thrown);
  return {};
}

}  // namespace lockbench::fibers
