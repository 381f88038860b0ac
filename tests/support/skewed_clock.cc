// Starts a program in a time namespace of its own if it is a certain rank of MPI: its monotonic
// clocks are ahead by so many nanoseconds. Usage: lockbench_skewed_clock RANK NANOSECONDS PROGRAM
// [ARGUMENT...]

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kNewTime = 0x80;  // CLONE_NEWTIME, which only a child enters

int enter_and_run(const char* nanoseconds, char** program) {
  if (unshare(kNewTime) != 0) return 125;
  const std::string offsets =
      std::string("monotonic 0 ") + nanoseconds + "\nboottime 0 " + nanoseconds + "\n";
  const int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, offsets.data(), offsets.size()) < 0) return 125;
  close(file);
  const pid_t child = fork();
  if (child == 0) {
    execv(program[0], program);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 125;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 1;
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::strcmp(rank, argv[1]) == 0) return enter_and_run(argv[2], argv + 3);
  execv(argv[3], argv + 3);
  return 127;
}
