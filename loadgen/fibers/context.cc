#include "loadgen/fibers/context.h"

#include <cstdlib>

namespace lockbench::fibers {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

Context::Context() noexcept {
#ifdef LOCKBENCH_TSAN
  tsan_ = __tsan_get_current_fiber();
#endif
}

Context::Context(Stack stack, void (*entry)(transfer_t)) noexcept
    : at_(make_fcontext(stack.data() + stack.size(), stack.size(), entry)) {
#ifdef LOCKBENCH_ASAN
  bottom_ = stack.data();
  size_ = stack.size();
#endif
#ifdef LOCKBENCH_TSAN
  own_ = true;
  tsan_ = __tsan_create_fiber(0);
#endif
}

Context::~Context() {
#ifdef LOCKBENCH_TSAN
  if (own_) __tsan_destroy_fiber(tsan_);
#endif
}

void Context::switch_to(Context& to) noexcept {
  announce(to, false);
  arrived(jump_fcontext(to.at_, this));
}

void Context::end_in(Context& to) noexcept {
  announce(to, true);
  jump_fcontext(to.at_, this);
  std::abort();  // nobody comes back
}

// Not instrumented: ThreadSanitizer would count its return as one of the context it switches to.
LOCKBENCH_NO_SANITIZE void Context::announce([[maybe_unused]] Context& to,
                                             [[maybe_unused]] bool for_good) noexcept {
#ifdef LOCKBENCH_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, to.bottom_, to.size_);
#endif
#ifdef LOCKBENCH_TSAN
  __tsan_switch_to_fiber(to.tsan_, 0);
#endif
}

void Context::arrived(transfer_t transfer) noexcept {
  auto& from = *static_cast<Context*>(transfer.data);
  from.at_ = transfer.fctx;
#ifdef LOCKBENCH_ASAN
  // How the bounds of the thread's own stack become known.
  __sanitizer_finish_switch_fiber(fake_stack_, &from.bottom_, &from.size_);
#endif
}

}  // namespace lockbench::fibers
