// Launches the kernel of scale.lua from C++: a state whose destructor closes
// it, errors as exceptions, and untrusted scripts with limits.
//
//     c++ scale.cpp $(pkg-config --cflags --libs cutelua) -o scale
//     ./scale scale.lua
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cutelua.h>

class State {
 public:
  explicit State(const cutelua_options &options) {
    cutelua_state *opened = nullptr;
    const cutelua_status status = cutelua_open(&options, &opened);
    if (status != CUTELUA_OK)
      throw std::runtime_error(cutelua_status_text(status));
    state_.reset(opened);
  }

  // Throws the error of the state unless a call succeeded.
  void check(cutelua_status status) const {
    if (status != CUTELUA_OK)
      throw std::runtime_error(std::string(cutelua_error(state_.get())));
  }

  cutelua_state *get() const { return state_.get(); }

 private:
  struct Close {
    void operator()(cutelua_state *s) const { cutelua_close(s); }
  };
  std::unique_ptr<cutelua_state, Close> state_;
};

static cutelua_arg tensor(std::vector<float> &data, const int64_t &size) {
  cutelua_arg a = {};
  a.type = CUTELUA_TENSOR;
  a.as.tensor.data = data.data();
  a.as.tensor.dtype = "f32";
  a.as.tensor.shape = &size;
  a.as.tensor.rank = 1;
  a.as.tensor.device = CUTELUA_HOST;
  return a;
}

static bool scale(const State &s, const char *path) {
  cutelua_ref script = 0, kernel = 0;
  s.check(cutelua_load_file(s.get(), path, &script));
  s.check(cutelua_find(s.get(), script, "scale", &kernel));
  const int64_t size = 1000;
  std::vector<float> x(1000, 2), y(1000);
  cutelua_arg factor = {};
  factor.type = CUTELUA_NUMBER;
  factor.as.number = 4;
  const cutelua_arg args[] = {tensor(x, size), tensor(y, size), factor};
  cutelua_launch_options launch = {};
  launch.size = sizeof launch;
  launch.grid[0] = 8;
  launch.block[0] = 128;
  s.check(cutelua_launch(s.get(), kernel, args, 3, &launch));
  std::printf("y[999] = %g\n", static_cast<double>(y[999]));
  return y[999] == 8;
}

// A script that is not the application's own ends at its budget.
static bool ends(const State &s) {
  const std::string endless = "while true do end";
  cutelua_ref script = 0;
  const cutelua_status status = cutelua_load_text(
    s.get(), endless.data(), endless.size(), "endless", &script);
  std::printf("status %d: %s\n", static_cast<int>(status),
              cutelua_error(s.get()));
  return status == CUTELUA_LIMIT;
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
