#include "loadgen/fibers/stacks.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "loadgen/fibers/sanitizers.h"

namespace lockbench::fibers {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGuard = Stacks::kGuardBytes;
constexpr std::size_t kStacksAtOnce = 32;
constexpr std::size_t kLeastBytes = 4 * kPage;
// Frames that sanitizers instrument are several times as large.
constexpr std::size_t kSizeFactor = kSanitized ? 4 : 1;
// Linux 6.13: a guard that does not split the mapping, of which a process may have 65,530 only.
constexpr int kGuardInstall = 102;
constexpr std::uint64_t kCanary = 0x6c6f636b62656e63;
constexpr std::size_t kCanaryAt = kGuard - sizeof kCanary;  // the first that an overflow reaches

std::size_t in_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// From the first byte that is not zero to the end of `size` bytes; 0 if there is none. Reads what
/// a fiber may write meanwhile, and what its frames forbid to read.
LOCKBENCH_NO_SANITIZE std::size_t written(const std::byte* from, std::size_t size) {
  const auto* const bytes =
      static_cast<const volatile unsigned char*>(static_cast<const void*>(from));
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] != 0) return size - i;
  }
  return 0;
}

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
  unpoison(stack);  // the frame that ended the last fiber never returned
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
  // A huge page would make all stacks in it resident.
  ::madvise(start, bytes, MADV_NOHUGEPAGE);
  const std::span slab(static_cast<std::byte*>(start), bytes);
  slabs_.push_back(slab);
  // Twice as much each time, as one by one would copy the list with each slab.
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
  note(used(stack));
  const std::size_t end = static_cast<std::size_t>(in_use - stack.data()) / kPage * kPage;
  if (end > kGuard) ::madvise(stack.data() + kGuard, end - kGuard, MADV_DONTNEED);
}

std::size_t Stacks::high_water() const {
  const std::scoped_lock lock(mutex_);
  for (const auto slab : slabs_) {
    for (std::size_t at = 0; at < slab.size(); at += bytes_) note(used(slab.subspan(at, bytes_)));
  }
  return high_water_.load(std::memory_order_relaxed);
}

void Stacks::note(std::size_t used) const noexcept {
  std::size_t most = high_water_.load(std::memory_order_relaxed);
  while (used > most && !high_water_.compare_exchange_weak(most, used, std::memory_order_relaxed)) {
  }
}

/// Pages that were never touched are not resident. Few stacks need a second look for the exact
/// byte.
std::size_t Stacks::used(Stack stack) const {
  constexpr std::size_t kLook = 64;
  std::array<unsigned char, kLook> resident{};
  for (std::size_t from = kGuard; from < stack.size(); from += kLook * kPage) {
    const std::size_t size = std::min(kLook * kPage, stack.size() - from);
    if (::mincore(stack.data() + from, size, resident.data()) != 0) return 0;
    for (std::size_t at = 0; at < size; at += kPage) {
      const std::size_t above = stack.size() - from - at - kPage;
      if ((resident[at / kPage] & 1U) == 0) continue;
      if (above + kPage <= high_water_.load(std::memory_order_relaxed)) return 0;
      const std::size_t in_page = written(stack.data() + from + at, kPage);
      if (in_page > 0) return above + in_page;
    }
  }
  return 0;
}

}  // namespace lockbench::fibers
