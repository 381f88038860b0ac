#include "loadgen/fibers/stacks.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace lockbench::fibers {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGuard = Stacks::kGuardBytes;
constexpr std::size_t kStacksAtOnce = 32;
constexpr std::size_t kLeastBytes = 4 * kPage;
// Sanitizers make frames several times as large.
constexpr std::size_t kSizeFactor = kSanitized ? 4 : 1;
// Linux 6.13: a guard that does not split the mapping; a process can have only 65,530 mappings.
constexpr int kGuardInstall = 102;
constexpr std::uint64_t kCanary = 0x6c6f636b62656e63;
constexpr std::size_t kCanaryAt = kGuard - sizeof kCanary;  // an overflow reaches it first

std::size_t in_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Whether the kernel guards the pages.
bool guard(void* pages) { return ::madvise(pages, kGuard, kGuardInstall) == 0; }

bool kernel_has_guards() {
  void* const pages =
      ::mmap(nullptr, kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  const bool has = guard(pages);
  ::munmap(pages, kGuard);
  return has;
}

}  // namespace

Stacks::Stacks(StackSize size)
    : bytes_(in_pages(std::max(size.bytes, kLeastBytes)) * kSizeFactor + kGuard),
      guarded_(kernel_has_guards()) {}

Stacks::~Stacks() {
  for (const auto slab : slabs_) ::munmap(slab.data(), slab.size());
}

tl::expected<Stack, std::string> Stacks::take() {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) {
    if (auto mapped = map_slab(); !mapped) return tl::unexpected(mapped.error());
  }
  const Stack stack = free_.back();
  free_.pop_back();
  unpoison(stack);  // the last frame of its earlier fiber never returned
  return stack;
}

void Stacks::give_back(Stack stack) noexcept {
  const std::scoped_lock lock(mutex_);
  free_.push_back(stack);  // never allocates: reserved when it was mapped
}

tl::expected<void, std::string> Stacks::map_slab() {
  const std::size_t bytes = bytes_ * kStacksAtOnce;
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (start == MAP_FAILED) {
    return tl::unexpected("no memory for the stack of a fiber: " +
                          std::system_category().message(errno));
  }
  // One huge page would make all its stacks resident.
  ::madvise(start, bytes, MADV_NOHUGEPAGE);
  const std::span slab(static_cast<std::byte*>(start), bytes);
  slabs_.push_back(slab);
  // Doubles, as a slab's room each time would copy the list with every slab.
  if (free_.capacity() < slabs_.size() * kStacksAtOnce) {
    free_.reserve(slabs_.size() * kStacksAtOnce * 2);
  }
  for (std::size_t i = kStacksAtOnce; i-- > 0;) {
    const Stack stack = slab.subspan(i * bytes_, bytes_);
    if (!guarded_) {
      std::memcpy(stack.data() + kCanaryAt, &kCanary, sizeof kCanary);
    } else if (!guard(stack.data())) {
      return tl::unexpected("the stack of a fiber cannot be guarded: " +
                            std::system_category().message(errno));
    }
    free_.push_back(stack);
  }
  return {};
}

bool Stacks::canary_lives(Stack stack) noexcept {
  std::uint64_t found = 0;
  std::memcpy(&found, stack.data() + kCanaryAt, sizeof found);
  return found == kCanary;
}

void Stacks::overflowed() const noexcept {
  fmt::print(stderr, "lockbench: a client needs more than its {} KiB of stack\n",
             (bytes_ - kGuard) / 1024);
  std::abort();
}

void Stacks::trim(Stack stack, const std::byte* in_use) noexcept {
  const std::size_t end = static_cast<std::size_t>(in_use - stack.data()) / kPage * kPage;
  if (end > kGuard) ::madvise(stack.data() + kGuard, end - kGuard, MADV_DONTNEED);
}

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
  std::abort();  // nothing switches back
}

// Not instrumented: ThreadSanitizer would count its return in the context that it switches to.
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
  // This yields the bounds of the thread's own stack.
  __sanitizer_finish_switch_fiber(fake_stack_, &from.bottom_, &from.size_);
#endif
}

}  // namespace lockbench::fibers
