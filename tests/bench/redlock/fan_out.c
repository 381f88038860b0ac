// The minimum cost of a lock on several Redis servers on this machine: SET to all, wait for a majority
// with poll, DEL to all, wait for a majority. fan_out SECONDS PORT... prints sections per second and the
// acquire p50 in microseconds.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kMostNodes = 15, kMostSamples = 4000000 };

static int nodes, fds[kMostNodes], due[kMostNodes];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void ask_all(const char* command) {
  int answered[kMostNodes] = {0}, answers = 0;
  for (int i = 0; i < nodes; ++i) {
    if (write(fds[i], command, strlen(command)) < 0) exit(1);
    ++due[i];
  }
  while (answers < nodes / 2 + 1) {
    struct pollfd polled[kMostNodes];
    int of[kMostNodes], count = 0;
    for (int i = 0; i < nodes; ++i) {
      if (answered[i]) continue;
      polled[count] = (struct pollfd){.fd = fds[i], .events = POLLIN};
      of[count++] = i;
    }
    poll(polled, (nfds_t)count, -1);
    for (int j = 0; j < count; ++j) {
      if (polled[j].revents == 0) continue;
      char buffer[512];
      const int i = of[j];
      const ssize_t got = read(fds[i], buffer, sizeof buffer);
      if (got <= 0) exit(1);
      for (ssize_t k = 0; k < got; ++k) due[i] -= buffer[k] == '\n';
      if (due[i] > 0) continue;
      answered[i] = 1;
      ++answers;
    }
  }
}

int main(int argc, char** argv) {
  const char* set = "*6\r\n$3\r\nSET\r\n$8\r\nfan:lock\r\n$1\r\nt\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n";
  const char* del = "*2\r\n$3\r\nDEL\r\n$8\r\nfan:lock\r\n";
  if (argc < 3 || argc > kMostNodes + 2) return 2;
  nodes = argc - 2;
  for (int i = 0; i < nodes; ++i) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[i + 2]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fds[i] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fds[i], (struct sockaddr*)&address, sizeof address) != 0) return 1;
    const int on = 1;
    setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  double* taken = malloc(kMostSamples * sizeof *taken);
  int sections = 0;
  const double begin = now(), end = begin + atof(argv[1]);
  while (now() < end && sections < kMostSamples) {
    const double asked_at = now();
    ask_all(set);
    taken[sections++] = now() - asked_at;
    ask_all(del);
  }
  const double elapsed = now() - begin;
  qsort(taken, (size_t)sections, sizeof *taken, by_size);
  printf("%.0f %.1f\n", sections / elapsed, taken[sections / 2] * 1e6);
  return 0;
}
