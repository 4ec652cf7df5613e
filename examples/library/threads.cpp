// Launches the kernel of scale.lua from four threads, each with a state of its
// own, so that no thread waits for another.
//
//     c++ -pthread threads.cpp $(pkg-config --cflags --libs cutelua) -o threads
//     ./threads scale.lua
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "state.hpp"

// Receives the result, or the message of the error: an exception must not
// leave a thread.
static void work(const char *path, int factor, std::string &result) try {
  cutelua_options options = {};
  options.size = sizeof options;
  const State s(options);
  const cutelua_ref kernel = s.find(s.load(path), "scale");
  const int64_t size = 256;
  std::vector<float> x(256, 1), y(256);
  cutelua_launch_options launch = {};
  launch.size = sizeof launch;
  launch.grid[0] = 2;
  launch.block[0] = 128;
  for (int i = 0; i < 10; i++)
    s.launch(kernel, {tensor(x, size), tensor(y, size), number(factor)},
             launch);
  result = std::to_string(static_cast<int>(y[255]));
} catch (const std::exception &e) {
  result = e.what();
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back(work, argv[1], i + 1,
                         std::ref(results[static_cast<size_t>(i)]));
  for (std::thread &t : threads) t.join();
  for (const std::string &r : results) std::printf("%s\n", r.c_str());
  return results[3] != "4";
}
// SPDX-License-Identifier: MIT
