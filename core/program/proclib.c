// Child processes, sockets and locks for the module "cute.sys". A child process
// communicates through a socket that is its standard input, output and error.
// Other programs of this computer can connect to a listening socket.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/platform.h"
#include "base/signals.h"
#include "program/program.h"

#define MT_PROCESS "cute.process"

// Maximum depth of nested child processes that end_child() kills.
enum { NESTED = 64 };

typedef struct Process {
  // Process id; 0 after the process was waited for, and for a socket without a
  // process.
  pid_t pid;
  int fd;      // socket; -1 after it was closed
  int status;  // exit status from waitpid
} Process;

static Process *check_process(lua_State *L, int idx) {
  return luaL_checkudata(L, idx, MT_PROCESS);
}

static Process *new_process(lua_State *L) {
  Process *p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = (Process){0, -1, 0};
  luaL_setmetatable(L, MT_PROCESS);
  return p;
}

static int failed(lua_State *L, int e) {
  lua_pushnil(L);
  lua_pushstring(L, strerror(e));
  return 2;
}

static int close_file(lua_State *L) {
  luaL_Stream *p = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  return luaL_fileresult(L, fclose(p->f) == 0, NULL);
}

// divert() -> file | nil, reason: redirects standard output to standard error.
// Returns the former standard output as a file.
static int sys_divert(lua_State *L) {
  luaL_Stream *p = lua_newuserdatauv(L, sizeof *p, 0);
  p->closef = NULL;
  luaL_setmetatable(L, LUA_FILEHANDLE);
  fflush(stdout);
  int fd = fcntl(1, F_DUPFD_CLOEXEC, 3);
  p->f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!p->f || dup2(2, 1) < 0) return failed(L, errno);
  p->closef = close_file;
  return 1;
}

// Called in a child process: prepares it for end_child(), and makes it end when
// its parent ends.
static void begin_tree(void) {
  platform_end_with_parent();
  platform_adopt();
  setpgid(0, 0);
}

// Kills a process and the processes that it started. Stops the process first:
// it then starts no further process, and still adopts orphaned descendants.
// Ignores processes that are nested deeper than `depth`.
static void end_tree(pid_t pid, int depth) {
  char path[64], word[16];
  kill(pid, SIGSTOP);
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
  FILE *f = depth > 0 ? fopen(path, "re") : NULL;
  while (f && fscanf(f, "%15s", word) == 1) end_tree(atoi(word), depth - 1);
  if (f) fclose(f);
  kill(pid, SIGKILL);
}

// Kills a child process and the processes that it started, also in other
// sessions. Also kills the process group, because end_tree() does not find
// processes that a thread started.
static void end_child(pid_t pid) {
  end_tree(pid, NESTED);
  kill(-pid, SIGKILL);
}

// Replaces this child process by the program `words`, which ends when the
// parent process ends. If the program cannot be started, writes errno to the
// pipe `told`. A successful start closes the pipe.
static _Noreturn void become(char **words, int fd, bool own_errors,
                             pid_t parent, int told) {
  begin_tree();
  if (getppid() == parent && dup2(fd, 0) == 0 && dup2(fd, 1) == 1 &&
      (own_errors || dup2(fd, 2) == 2))
    execvp(words[0], words);
  int e = errno;
  if (write(told, &e, sizeof e) < 0) _exit(126);
  _exit(127);
}

// Runs a program in a child process, and stores the child's id. Returns 0 or an
// errno value.
static int start(char **words, int fd, bool own_errors, pid_t *child) {
  int told[2], e = 0;
  if (pipe2(told, O_CLOEXEC) != 0) return errno;
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(words, fd, own_errors, parent, told[1]);
  if (pid < 0) e = errno;
  close(told[1]);
  ssize_t n = 0;
  if (pid > 0) {
    int sent;
    do n = read(told[0], &sent, sizeof sent);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof sent) e = sent;
  }
  close(told[0]);
  if (pid > 0 && e)
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  *child = pid;
  return e;
}

// spawn(words [, own_errors]) -> process | nil, reason: runs program words[1]
// with the other words as arguments. With own_errors, the process keeps this
// program's standard error.
static int sys_spawn(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  bool own_errors = lua_toboolean(L, 2);
  size_t n = (size_t)luaL_len(L, 1);
  luaL_argcheck(L, n > 0, 1, "no program");
  luaL_checkstack(L, (int)n, "too many words");
  char **words = lua_newuserdatauv(L, (n + 1) * sizeof *words, 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    words[i] = (char *)(uintptr_t)luaL_checkstring(L, -1);
  }
  words[n] = NULL;
  Process *p = new_process(L);
  int fd[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
    return failed(L, errno);
  p->fd = fd[0];
  pid_t pid = 0;
  int e = start(words, fd[1], own_errors, &pid);
  close(fd[1]);
  if (e) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", words[0], strerror(e));
    return 2;
  }
  p->pid = pid;
  return 1;
}

// fork() -> process | nil, reason: starts a copy of this process. In the copy,
// fork() returns a socket that is connected to the parent, and true. The copy
// ends when its parent ends. The copy must end by calling leave().
static int sys_fork(lua_State *L) {
  Process *p = new_process(L);
  int fd[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
    return failed(L, errno);
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  int e = errno;
  p->fd = fd[pid == 0];
  close(fd[pid != 0]);
  if (pid < 0) return failed(L, e);
  p->pid = pid;
  if (pid > 0) return 1;
  begin_tree();
  if (getppid() != parent) _exit(1);
  lua_pushboolean(L, 1);
  return 2;
}

// mute(): discards the output of this process from now on. Closes the streams
// first, because the process may have reached its limit on open files.
static int sys_mute(lua_State *L) {
  (void)L;
  fflush(NULL);
  for (int fd = 1; fd <= 2; fd++) {
    close(fd);
    if (open("/dev/null", O_WRONLY) < 0) return 0;
  }
  return 0;
}

// leave(code): ends a process that fork() created, without running functions
// registered by atexit.
static int sys_leave(lua_State *L) {
  _exit((int)luaL_checkinteger(L, 1));
}

// listen(port) -> socket, port | nil, reason: listens on the loopback address.
// Port 0 selects any free port.
static int sys_listen(lua_State *L) {
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t size = sizeof at;
  int on = 1;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons((uint16_t)luaL_checkinteger(L, 1));
  Process *p = new_process(L);
  p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (p->fd < 0 ||
      setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(p->fd, (struct sockaddr *)&at, size) != 0 ||
      listen(p->fd, 64) != 0 ||
      getsockname(p->fd, (struct sockaddr *)&at, &size) != 0)
    return failed(L, errno);
  lua_pushinteger(L, ntohs(at.sin_port));
  return 2;
}

// p:accept() -> socket | nil, reason: waits for the next connection.
static int process_accept(lua_State *L) {
  Process *of = check_process(L, 1), *p = new_process(L);
  p->fd = accept4(of->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return p->fd < 0 ? failed(L, errno) : 1;
}

// p:offer(text, from) -> index | nil, reason: sends the bytes of text from
// index `from` on, as many as the socket accepts without waiting. Returns the
// index of the next byte to send.
static int process_offer(lua_State *L) {
  Process *p = check_process(L, 1);
  size_t n, at = (size_t)luaL_checkinteger(L, 3) - 1;
  const char *s = luaL_checklstring(L, 2, &n);
  luaL_argcheck(L, at <= n, 3, "a place of the text");
  ssize_t k = at < n ? send(p->fd, s + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                     : 0;
  if (k < 0 && errno != EINTR && errno != EAGAIN) return failed(L, errno);
  lua_pushinteger(L, (lua_Integer)at + 1 + (k > 0 ? k : 0));
  return 1;
}

// p:finish(): closes the socket for sending, so that the other process reads an
// end of file.
static int process_finish(lua_State *L) {
  shutdown(check_process(L, 1)->fd, SHUT_WR);
  return 0;
}

// p:send(text) -> true | nil, reason: sends all of the text.
static int process_send(lua_State *L) {
  Process *p = check_process(L, 1);
  size_t n, at = 0;
  const char *s = luaL_checklstring(L, 2, &n);
  while (at < n) {
    ssize_t k = send(p->fd, s + at, n - at, MSG_NOSIGNAL);
    if (k < 0 && (errno != EINTR || signals_asked)) return failed(L, errno);
    if (k > 0) at += (size_t)k;
  }
  lua_pushboolean(L, 1);
  return 1;
}

// input() -> socket | nil, reason: returns standard input as an object for
// poll() and p:receive(). Standard input may be a pipe, a terminal or a file.
// After this call, a write to a pipe that no process reads fails, but no longer
// ends this program.
static int sys_input(lua_State *L) {
  Process *p = new_process(L);
  signal(SIGPIPE, SIG_IGN);
  p->fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
  return p->fd < 0 ? failed(L, errno) : 1;
}

// limit(bytes, files) -> true | nil, reason: limits the memory of this process.
// If `files` is false, the process can no longer open files, sockets or pipes.
// Files that are open stay open.
static int sys_limit(lua_State *L) {
  rlim_t bytes = (rlim_t)luaL_checkinteger(L, 1);
  struct rlimit memory = {bytes, bytes}, none = {0, 0}, open = {3, 3};
  if (setrlimit(RLIMIT_AS, &memory) != 0 ||
      setrlimit(RLIMIT_CORE, &none) != 0 ||
      (!lua_toboolean(L, 2) && setrlimit(RLIMIT_NOFILE, &open) != 0))
    return failed(L, errno);
  lua_pushboolean(L, 1);
  return 1;
}

// limit_processor(seconds): ends this process by a signal when it has used this
// many seconds of processor time.
static int sys_limit_processor(lua_State *L) {
  rlim_t seconds = (rlim_t)luaL_checkinteger(L, 1);
  setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
  return 0;
}

// p:receive() -> bytes | nil at the end: waits for a first byte and returns all
// bytes that have arrived.
static int process_receive(lua_State *L) {
  Process *p = check_process(L, 1);
  char text[1 << 14];
  ssize_t n;
  do {
    n = read(p->fd, text, sizeof text);
  } while (n < 0 && errno == EINTR && !signals_asked);
  if (n <= 0) return 0;
  lua_pushlstring(L, text, (size_t)n);
  return 1;
}

// p:kill(): kills the process and the processes that it started (SIGKILL).
static int process_kill(lua_State *L) {
  Process *p = check_process(L, 1);
  if (p->pid > 0) end_child(p->pid);
  return 0;
}

// p:wait() -> "exit", code | "signal", number: waits for the process to end.
static int process_wait(lua_State *L) {
  Process *p = check_process(L, 1);
  while (p->pid > 0) {
    if (waitpid(p->pid, &p->status, 0) == p->pid) p->pid = 0;
    else if (errno != EINTR) return failed(L, errno);
    else if (signals_asked) return 0;
  }
  bool by_signal = WIFSIGNALED(p->status);
  lua_pushstring(L, by_signal ? "signal" : "exit");
  lua_pushinteger(L, by_signal ? WTERMSIG(p->status)
                               : WEXITSTATUS(p->status));
  return 2;
}

static int process_close(lua_State *L) {
  Process *p = check_process(L, 1);
  if (p->fd >= 0) close(p->fd);
  p->fd = -1;
  if (p->pid <= 0) return 0;
  end_child(p->pid);
  while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR) continue;
  p->pid = 0;
  return 0;
}

// poll(processes, seconds[, sends]) -> index | nil after a timeout: waits until
// one of the processes has sent something, has ended or, if sends[index] is
// true for it, accepts more data.
static int sys_poll(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Number seconds = luaL_checknumber(L, 2);
  bool sends = !lua_isnoneornil(L, 3);
  if (sends) luaL_checktype(L, 3, LUA_TTABLE);
  size_t n = (size_t)luaL_len(L, 1);
  struct pollfd *list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    list[i] = (struct pollfd){check_process(L, -1)->fd, POLLIN, 0};
    lua_pop(L, 1);
    if (!sends) continue;
    if (lua_rawgeti(L, 3, (lua_Integer)i + 1) && lua_toboolean(L, -1))
      list[i].events = POLLOUT;
    lua_pop(L, 1);
  }
  int ms = seconds < 0 ? 0 : seconds > 1e6 ? 1000000000 : (int)(seconds * 1e3);
  if (poll(list, n, ms) <= 0) return 0;
  for (size_t i = 0; i < n; i++) {
    if (!list[i].revents) continue;
    lua_pushinteger(L, (lua_Integer)i + 1);
    return 1;
  }
  return 0;
}

// lock(path) -> handle | nil, reason: waits for the lock of a file, and holds
// it until the handle is closed. Creates the file if it does not exist.
static int sys_lock(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  Process *p = new_process(L);
  p->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (p->fd < 0) return failed(L, errno);
  while (flock(p->fd, LOCK_EX) != 0)
    if (errno != EINTR || signals_asked) return failed(L, errno);
  return 1;
}

#define SELF "/proc/self/exe"

// Reports whether a file is an ELF executable, which needs no interpreter
// program.
static bool is_machine_code(const char *path) {
  char head[4] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  bool ok = read(fd, head, 4) == 4 && memcmp(head, "\177ELF", 4) == 0;
  close(fd);
  return ok;
}

// For systems without /proc: stores the path of the running executable, which
// the kernel passed at its start. Returns false if this is the path of a
// script, whose first line is #! and this program's path.
static bool started_as(char out[PATH_MAX]) {
  const char *s = (const char *)getauxval(AT_EXECFN);
  return s && is_machine_code(s) && realpath(s, out);
}

// program() -> path of the running executable
static int sys_program(lua_State *L) {
  char path[PATH_MAX];
  bool other = access(SELF, X_OK) != 0 && started_as(path);
  lua_pushstring(L, other ? path : SELF);
  return 1;
}

// home() -> folder of the running executable | nil, reason
static int sys_home(lua_State *L) {
  char path[PATH_MAX];
  ssize_t n = readlink(SELF, path, sizeof path);
  int e = errno;
  if (n < 0 && started_as(path)) n = (ssize_t)strlen(path);
  errno = e;
  while (n > 0 && path[n - 1] != '/') n--;
  if (n <= 0) return failed(L, errno);
  lua_pushlstring(L, path, (size_t)n);
  return 1;
}

void proclib_open(lua_State *L) {
  static const luaL_Reg methods[] = {
    {"send", process_send}, {"offer", process_offer},
    {"receive", process_receive}, {"accept", process_accept},
    {"finish", process_finish},
    {"kill", process_kill}, {"wait", process_wait}, {"close", process_close},
    {"__gc", process_close}, {"__close", process_close}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"spawn", sys_spawn}, {"fork", sys_fork}, {"mute", sys_mute},
    {"leave", sys_leave}, {"listen", sys_listen}, {"poll", sys_poll},
    {"lock", sys_lock}, {"program", sys_program}, {"home", sys_home},
    {"divert", sys_divert}, {"input", sys_input}, {"limit", sys_limit},
    {"limit_processor", sys_limit_processor},
    {NULL, NULL}};
  luaL_newmetatable(L, MT_PROCESS);
  luaL_setfuncs(L, methods, 0);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_setfuncs(L, funcs, 0);
}
// SPDX-License-Identifier: MIT
