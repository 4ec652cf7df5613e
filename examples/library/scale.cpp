// Launches the kernel of scale.lua from C++, in a state for untrusted scripts,
// with limits.
//
//     c++ -std=c++17 scale.cpp $(pkg-config --cflags --libs cutelua) -o scale
//     ./scale scale.lua
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "state.hpp"

static bool scale(const State &s, const char *path) {
  const cutelua_ref kernel = s.find(s.load(path), "scale");
  const int64_t size = 1000;
  std::vector<float> x(1000, 2), y(1000);
  cutelua_launch_options options = {};
  options.size = sizeof options;
  options.grid[0] = 8;
  options.block[0] = 128;
  s.launch(kernel, {tensor(x, size), tensor(y, size), number(4)}, options);
  std::printf("y[999] = %g\n", static_cast<double>(y[999]));
  return y[999] == 8;
}

// A script that is not the application's own ends at its budget.
static bool ends(const State &s) {
  const std::string endless = "while true do end";
  cutelua_ref script = 0;
  try {
    s.check(cutelua_load_text(s.get(), endless.data(), endless.size(),
                              "endless", &script));
  } catch (const Error &e) {
    std::printf("status %d, kind %s, %s:%d: %s\n", static_cast<int>(e.status),
                e.kind.c_str(), e.file.c_str(), e.line, e.what());
    return e.status == CUTELUA_LIMIT;
  }
  return false;
}

int main(int argc, char **argv) try {
  if (argc < 2) return 2;
  cutelua_options options = {};
  options.size = sizeof options;
  options.flags = CUTELUA_UNTRUSTED;
  options.memory = 64 << 20;
  options.instructions = 10000000;
  const State s(options);
  return scale(s, argv[1]) && ends(s) ? 0 : 1;
} catch (const std::exception &e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
// SPDX-License-Identifier: MIT
