#include "tests/support/fiber_lock.h"

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "loadgen/fibers/scheduler.h"
#include "strategies/carrier.h"

namespace lockbench::test {
namespace {

bool clients_are_fibers() {
  const char* const wanted = std::getenv("LOCKBENCH_TEST_CARRIER");
  return wanted != nullptr && std::string_view(wanted) == "fibers";
}

fibers::Pool& one_thread() {
  static const auto pool = fibers::Pool::make(1);
  if (!pool) throw std::runtime_error(pool.error());
  return **pool;
}

class FiberLock : public LockStrategy {
 public:
  FiberLock(const Descriptor& descriptor, const Context& context) {
    on_carrier([&] { lock_ = make_strategy(descriptor, context); });
  }
  FiberLock(const FiberLock&) = delete;
  FiberLock& operator=(const FiberLock&) = delete;
  ~FiberLock() override {
    on_carrier([this] { lock_.reset(); });
  }

  StoreResult<void> connect() override {
    return carried<StoreResult<void>>([this] { return lock_->connect(); });
  }
  AcquireResult acquire(const AcquireRequest& request) override {
    return carried<AcquireResult>([&] { return lock_->acquire(request); });
  }
  ReleaseResult release(const Lease& lease) override {
    return carried<ReleaseResult>([&] { return lock_->release(lease); });
  }
  RenewResult renew(const Lease& lease, Duration ttl) override {
    return carried<RenewResult>([&] { return lock_->renew(lease, ttl); });
  }

 private:
  template <class Result, class Call>
  static Result carried(const Call& call) {
    Result result;
    on_carrier([&] { result = call(); });
    return result;
  }

  std::unique_ptr<LockStrategy> lock_;
};

}  // namespace

void on_carrier(const std::function<void()>& work) {
  // If this is a fiber already, its work may need another client: run it here.
  if (!clients_are_fibers() || Carrier::current().shared()) {
    work();
    return;
  }
  std::exception_ptr thrown;
  const auto body = [&](const std::stop_token&) {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  auto fiber = one_thread().start(0, body, [](const std::string&) {});
  if (!fiber) throw std::runtime_error(fiber.error());
  fiber->reset();  // waits for its end
  if (thrown) std::rethrow_exception(thrown);
}

std::unique_ptr<LockStrategy> make_carried(const Descriptor& descriptor, const Context& context) {
  if (!clients_are_fibers()) return make_strategy(descriptor, context);
  return std::make_unique<FiberLock>(descriptor, context);
}

}  // namespace lockbench::test
