#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>

namespace lockbench::loadgen {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(void* pages) const { ::munmap(pages, bytes); }
};
/// Objects that are zero, and take memory and time only from their first use on: the kernel's zero
/// pages.
template <class T>
using Zeros = std::unique_ptr<T[], Unmap>;  // NOLINT(modernize-avoid-c-arrays)

template <class T>
Zeros<T> make_zeros(std::size_t count) {
  if (count == 0) return {};
  const std::size_t bytes = count * sizeof(T);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return Zeros<T>(static_cast<T*>(pages), Unmap{bytes});
}

}  // namespace lockbench::loadgen
