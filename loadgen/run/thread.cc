#include "loadgen/run/thread.h"

#include <memory>
#include <system_error>
#include <utility>

namespace lockbench::loadgen {
namespace {

// Only what is touched takes memory; sanitizers and the resolver need some room.
constexpr std::size_t kStackBytes = std::size_t{256} * 1024;

void* run_body(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

tl::expected<SmallThread, std::string> SmallThread::start(std::function<void()> body) {
  auto argument = std::make_unique<std::function<void()>>(std::move(body));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t handle{};
  const int error = pthread_create(&handle, &attributes, run_body, argument.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return tl::unexpected(std::system_category().message(error));
  argument.release();  // NOLINT(bugprone-unused-return-value): the thread owns it now
  return SmallThread(handle);
}

SmallThread::SmallThread(SmallThread&& other) noexcept
    : handle_(other.handle_), joinable_(std::exchange(other.joinable_, false)) {}

SmallThread::~SmallThread() {
  if (joinable_) pthread_join(handle_, nullptr);
}

}  // namespace lockbench::loadgen
