// Classes for programs in C++: a state that its destructor closes, and errors
// as exceptions.
#ifndef STATE_HPP
#define STATE_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cutelua.h>

// An error of a script or kernel: what() is the message.
class Error : public std::runtime_error {
 public:
  Error(cutelua_status failed, cutelua_state *s)
      : std::runtime_error(cutelua_error(s)),
        status(failed),
        kind(cutelua_error_kind(s)),
        file(cutelua_error_file(s)),
        line(cutelua_error_line(s)) {}

  const cutelua_status status;
  const std::string kind, file;
  const int line;
};

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
    if (status != CUTELUA_OK) throw Error(status, get());
  }

  cutelua_ref load(const std::string &path) const {
    cutelua_ref script = 0;
    check(cutelua_load_file(get(), path.c_str(), &script));
    return script;
  }

  cutelua_ref find(cutelua_ref script, const char *name) const {
    cutelua_ref found = 0;
    check(cutelua_find(get(), script, name, &found));
    return found;
  }

  void launch(cutelua_ref kernel, const std::vector<cutelua_arg> &args,
              const cutelua_launch_options &options) const {
    check(cutelua_launch(get(), kernel, args.data(), args.size(), &options));
  }

  cutelua_state *get() const { return state_.get(); }

 private:
  struct Close {
    void operator()(cutelua_state *s) const { cutelua_close(s); }
  };
  std::unique_ptr<cutelua_state, Close> state_;
};

// Describes the memory of a vector, without a copy.
inline cutelua_arg tensor(std::vector<float> &data, const int64_t &size) {
  cutelua_arg a = {};
  a.type = CUTELUA_TENSOR;
  a.as.tensor.data = data.data();
  a.as.tensor.dtype = "f32";
  a.as.tensor.shape = &size;
  a.as.tensor.rank = 1;
  a.as.tensor.device = CUTELUA_HOST;
  return a;
}

inline cutelua_arg number(double x) {
  cutelua_arg a = {};
  a.type = CUTELUA_NUMBER;
  a.as.number = x;
  return a;
}

#endif
// SPDX-License-Identifier: MIT
