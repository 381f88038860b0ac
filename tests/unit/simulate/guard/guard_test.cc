#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "simulate/hunt.h"
#include "tests/unit/simulate/plans.h"

// These take the place of the libraries' functions in this program, and note who calls them.

namespace {

bool armed = false;
std::set<std::string>* reached = nullptr;

void note(const char* what) {
  if (armed) reached->insert(what);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  note("clock_gettime");
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}
int gettimeofday(timeval* time, void*) noexcept {
  note("gettimeofday");
  timespec now{};
  const auto failed = static_cast<int>(::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now));
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return failed;
}
time_t time(time_t* out) noexcept {
  note("time");
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
int socket(int domain, int type, int protocol) noexcept {
  note("socket");
  return static_cast<int>(::syscall(SYS_socket, domain, type, protocol));
}
ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  note("getrandom");
  return ::syscall(SYS_getrandom, bytes, size, flags);
}
int rand() noexcept {
  note("rand");
  return 4;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  note("pthread_create");
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}
// std::random_device::operator(), which may ask the processor.
unsigned int _ZNSt13random_device9_M_getvalEv(void*) {  // NOLINT(readability-identifier-naming)
  note("std::random_device");
  return 4;
}
}

namespace lockbench::simulate {
namespace {

using testing::IsEmpty;
using testing::IsSupersetOf;

class Guard {
 public:
  Guard() {
    reached = &seen_;
    armed = true;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { armed = false; }
  const std::set<std::string>& seen() const { return seen_; }

 private:
  std::set<std::string> seen_;
};

TEST(Guard, SeesWhatASimulationMustNotReach) {
  const Guard guard;
  (void)Carrier::current().now();
  (void)::time(nullptr);
  ::close(::socket(AF_INET, SOCK_STREAM, 0));
  std::thread([] {}).join();
  (void)random_seed();
  char byte = 0;
  (void)::getrandom(&byte, 1, 0);
  EXPECT_THAT(guard.seen(), IsSupersetOf({"clock_gettime", "time", "socket", "pthread_create",
                                          "std::random_device", "getrandom"}));
}

TEST(Guard, ASimulationReachesNoClockSocketThreadOrGlobalRandom) {
  for (const std::string& name : simulated()) {
    Plan plan = plan_for(name);
    plan.faults = every_fault();
    plan.pauses = {test::must(Pauses::parse("1%@exp(3s)"))};
    const Guard guard;
    (void)test::must(simulate(plan, 3));
    (void)test::must(play(*plan.strategy, {.seed = 3}));
    EXPECT_THAT(guard.seen(), IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace lockbench::simulate
