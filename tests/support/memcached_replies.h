#pragma once

#include <string>
#include <vector>

namespace lockbench::test {

/// Every reply of the protocol, and some that only look like one; items have this key.
inline std::vector<std::string> memcached_replies(const std::string& key) {
  return {"STORED\r\n",
          "NOT_STORED\r\n",
          "EXISTS\r\n",
          "NOT_FOUND\r\n",
          "DELETED\r\n",
          "TOUCHED\r\n",
          "OK\r\n",
          "END\r\n",
          "RESET\r\n",
          "BUSY currently processing crawler request\r\n",
          "12\r\n",
          "HD\r\n",
          "EN\r\n",
          "NS\r\n",
          "ERROR\r\n",
          "CLIENT_ERROR bad data chunk\r\n",
          "SERVER_ERROR out of memory storing object\r\n",
          "SERVER_ERROR Connection timed out\r\n",
          "VERSION 1.6.18\r\n",
          "STAT pid 1\r\nEND\r\n",
          "VALUE " + key + " 0 1 1\r\nx\r\nEND\r\n",
          "VALUE other 0 1 1\r\nx\r\nEND\r\n",
          "VALUE " + key + " 0 1\r\nx\r\nEND\r\n",
          "VALUE " + key + " 0 5 1\r\nx\r\nEND\r\n",
          "VALUE " + key + " 0 99999999999999999999 1\r\n",
          "VALUE " + key + " 0 4294967295 1\r\n",
          "VALUE " + key + " 0 -1 1\r\n",
          "VALUE " + key + " 0 1 7 7\r\nx\r\nEND\r\n",
          "VALUE " + key + " 0 1 7\r\nxy\r\nEND\r\n",
          "VALUE " + key + " 0 1 99999999999999999999\r\nx\r\nEND\r\n",
          "VALUE\r\n",
          "STAT\r\n",
          "stored\r\n",
          " STORED\r\n",
          "STORED\n",
          "\r\n",
          std::string("STORED\0\r\n", 9),
          "\x1b[31mSTORED\x9b\r\n",
          "-ERR unknown command\r\n",
          "\x15\x03\x01"};
}

}  // namespace lockbench::test
