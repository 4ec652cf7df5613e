// Reads and writes files for users. Handles pipes, links, permissions and
// terminals, which Lua's io library does not support. Also makes external text
// safe to show on a terminal.
#define _GNU_SOURCE
#include "base/signals.h"
#include "bind/face.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- handles of the io library ----

static int stream_close(lua_State *L) {
  luaL_Stream *s = face_checkudata(L, 1, LUA_FILEHANDLE);
  return luaL_fileresult(L, fclose(s->f) == 0, NULL);
}

// Pushes a Lua file that is not open yet. If an error is raised before
// stream_take opens it, no descriptor is lost.
static luaL_Stream *push_stream(lua_State *L) {
  luaL_Stream *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (luaL_Stream){0};
  luaL_setmetatable(L, LUA_FILEHANDLE);
  return s;
}

// Makes the Lua file s an open file with descriptor fd. If memory is exhausted,
// closes fd and returns false.
static bool stream_take(luaL_Stream *s, int fd, const char *mode) {
  s->f = fdopen(fd, mode);
  if (!s->f) {
    int e = errno;
    close(fd);
    errno = e;
    return false;
  }
  s->closef = stream_close;
  return true;
}

// Returns nil and the system's reason for error number e.
static int failed(lua_State *L, int e) {
  lua_pushnil(L);
  lua_pushstring(L, strerror(e));
  return 2;
}

// ---- reading ----

// Resolves the symbolic links in a path. Fails if the link is broken, or
// belongs to another user (except root), because such a link could lead to any
// file of this user. On failure, sets errno and returns false.
static bool resolve(const char *path, char out[PATH_MAX]) {
  struct stat st;
  if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
    errno = EPERM;
    return (st.st_uid == geteuid() || st.st_uid == 0) && realpath(path, out);
  }
  errno = ENAMETOOLONG;
  return (size_t)snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
}

// open_input(path[, how]) -> file | nil, reason. Without `how`, also opens
// pipes and devices. With `how`, opens only a plain file, and never waits.
// "own": the path must not be a link. "private": the file must belong to this
// user, and other users lose their permissions for it.
static int l_open_input(lua_State *L) {
  static const char *const hows[] = {"any", "plain", "own", "private", NULL};
  enum { ANY, PLAIN, OWN, PRIVATE };
  const char *path = face_checkstr(L, 1);
  int how = luaL_checkoption(L, 2, "any", hows);
  char target[PATH_MAX];
  struct stat st;
  luaL_Stream *s = push_stream(L);
  if (how == PRIVATE && !resolve(path, target)) return failed(L, errno);
  int fd = open(how == PRIVATE ? target : path,
                O_RDONLY | O_CLOEXEC | (how ? O_NONBLOCK : 0)
                | (how == OWN ? O_NOFOLLOW : 0));
  if (fd < 0) return failed(L, errno);
  int e = fstat(fd, &st) != 0 ? errno
        : S_ISDIR(st.st_mode) ? EISDIR
        : how == ANY ? 0
        : !S_ISREG(st.st_mode) ? EINVAL
        : how == PRIVATE && st.st_uid != geteuid() ? EPERM : 0;
  if (e) {
    close(fd);
    return failed(L, e);
  }
  if (how == PRIVATE && (st.st_mode & 077))
    fchmod(fd, st.st_mode & 0700);
  if (!stream_take(s, fd, "rb")) return failed(L, errno);
  return 1;
}

// file_kind(path) -> "file", "folder", "pipe" (or socket) or "device" | nil,
// reason. Follows links.
static int l_file_kind(lua_State *L) {
  struct stat st;
  if (stat(face_checkstr(L, 1), &st) != 0) return failed(L, errno);
  mode_t m = st.st_mode;
  lua_pushstring(L, S_ISREG(m) ? "file" : S_ISDIR(m) ? "folder"
                  : S_ISCHR(m) || S_ISBLK(m) ? "device" : "pipe");
  return 1;
}

// real_path(path) -> the absolute path without symbolic links | nil, reason
static int l_real_path(lua_State *L) {
  char out[PATH_MAX];
  if (!realpath(face_checkstr(L, 1), out)) return failed(L, errno);
  lua_pushstring(L, out);
  return 1;
}

// is_link(path) -> whether the path itself is a symbolic link
static int l_is_link(lua_State *L) {
  struct stat st;
  lua_pushboolean(L, lstat(face_checkstr(L, 1), &st) == 0 &&
                     S_ISLNK(st.st_mode));
  return 1;
}

// The userdata of an open folder. Collecting the userdata closes the folder.
static int folder_close(lua_State *L) {
  DIR **d = lua_touserdata(L, 1);
  if (*d) closedir(*d);
  *d = NULL;
  return 0;
}

// folder_names(path) -> list of the names in a folder, without "." and "..", in
// any order | nil, reason.
static int l_folder_names(lua_State *L) {
  const char *path = face_checkstr(L, 1);
  lua_newtable(L);
  DIR **d = lua_newuserdatauv(L, sizeof(DIR *), 0);
  *d = NULL;
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, folder_close);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, "__gc");
  lua_setfield(L, -2, "__close");
  lua_setmetatable(L, -2);
  *d = opendir(path);
  if (!*d) return failed(L, errno);
  lua_toclose(L, -1);
  lua_Integer n = 0;
  for (struct dirent *e; (e = readdir(*d)); ) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    lua_pushstring(L, e->d_name);
    lua_rawseti(L, -3, ++n);
  }
  lua_settop(L, -2);
  return 1;
}

// ---- writing ----

typedef struct Aside { char s[PATH_MAX + 32]; } Aside;

// Creates the next of 8 random names for a file beside the target. A file with
// this name may already exist. Returns false after the last name.
static bool next_aside(Aside *a, const char *target, uint64_t *seed, int *n) {
  if (!*n) *seed = base_nanotime() ^ (uint64_t)getpid() << 32;
  snprintf(a->s, sizeof a->s, "%s.%016llx.new", target,
           (unsigned long long)base_random(seed));
  return (*n)++ < 8;
}

// Opens a file without a name in the target's folder. The system removes such a
// file when it is closed. Returns -1 if the system does not support unnamed
// files.
static int open_unnamed(const char *target, mode_t mode) {
  char folder[PATH_MAX];
  const char *slash = strrchr(target, '/');
  size_t n = slash ? (size_t)(slash - target) : 0;
  if (n > 0) memcpy(folder, target, n);
  else folder[n++] = slash ? '/' : '.';
  folder[n] = '\0';
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  return open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
}

static int open_named(const char *target, mode_t mode, Aside *a) {
  uint64_t seed;
  int n = 0, fd = -1;
  while (fd < 0 && next_aside(a, target, &seed, &n)) {
    fd = open(a->s, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0 && errno != EEXIST) break;
  }
  return fd;
}

// open_aside(path[, private]) -> file, its name (false: it has none), path of
// the file to replace | nil, reason. Opens a new file. The caller writes to it
// the new contents of the file at `path`. The new file has the mode of the old
// file, or 0600 if `private`.
static int l_open_aside(lua_State *L) {
  const char *path = face_checkstr(L, 1);
  bool private = lua_toboolean(L, 2), named;
  mode_t mode = private ? 0600 : 0666;
  char target[PATH_MAX];
  Aside aside;
  struct stat st;
  luaL_Stream *s = push_stream(L);
  if (!resolve(path, target)) return failed(L, errno);
  int fd = open_unnamed(target, mode);
  named = fd < 0;
  if (named) fd = open_named(target, mode, &aside);
  if (fd < 0) return failed(L, errno);
  if (private) fchmod(fd, 0600);
  else if (stat(target, &st) == 0) fchmod(fd, st.st_mode & 0777);
  if (!stream_take(s, fd, "wb")) {
    int e = errno;
    if (named) unlink(aside.s);
    return failed(L, e);
  }
  if (named) lua_pushstring(L, aside.s);
  else lua_pushboolean(L, 0);
  lua_pushstring(L, target);
  return 3;
}

// Gives a file without a name one of the names in `a`, next to the target.
static bool name_unnamed(int fd, const char *target, Aside *a) {
  char from[64];
  uint64_t seed;
  snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
  for (int n = 0; next_aside(a, target, &seed, &n);) {
    if (linkat(AT_FDCWD, from, AT_FDCWD, a->s, AT_SYMLINK_FOLLOW) == 0)
      return true;
    if (errno != EEXIST) break;
  }
  return false;
}

// put_in_place(file, name, target) -> true | nil, reason: replaces the target
// by a file that open_aside opened. Signals are blocked while the new file has
// a temporary name.
static int l_put_in_place(lua_State *L) {
  luaL_Stream *s = face_checkudata(L, 1, LUA_FILEHANDLE);
  const char *name = lua_tostring(L, 2), *target = face_checkstr(L, 3);
  Aside aside;
  sigset_t all, was;
  if (fflush(s->f) != 0) return failed(L, errno);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &was);
  bool ok = name || name_unnamed(fileno(s->f), target, &aside);
  if (ok && !name) name = aside.s;
  ok = ok && rename(name, target) == 0;
  int e = errno;
  if (!ok && name == aside.s) unlink(name);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
  if (!ok) return failed(L, e);
  lua_pushboolean(L, 1);
  return 1;
}

// Interval, in milliseconds, at which a program that waits for a pipe checks
// for Ctrl-C.
enum { LOOK = 20 };

// Reports whether the program may wait longer: no Ctrl-C arrived, and fewer
// than `seconds` seconds have passed since the time `since`.
static bool may_wait(uint64_t since, double seconds) {
  return !signals_asked && (double)(base_nanotime() - since) < seconds * 1e9;
}

// Opens a named pipe for writing as soon as it has a reader. On failure, sets
// errno and returns -1. errno is ENXIO if no reader came within `seconds`.
static int pipe_open(const char *path, double seconds) {
  uint64_t since = base_nanotime();
  int fd;
  while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0
         && errno == ENXIO && may_wait(since, seconds))
    poll(NULL, 0, LOOK);
  return fd;
}

// Writes n bytes to a pipe. On failure, sets errno and returns false. errno is
// ETIMEDOUT if the reader has read nothing for `seconds` seconds.
static bool pipe_put(int fd, const char *s, size_t n, double seconds) {
  uint64_t since = base_nanotime();
  while (n > 0) {
    ssize_t k = write(fd, s, n);
    if (k > 0) {
      s += k;
      n -= (size_t)k;
      since = base_nanotime();
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!may_wait(since, seconds)) {
      errno = ETIMEDOUT;
      return false;
    } else {
      poll(&(struct pollfd){fd, POLLOUT, 0}, 1, LOOK);
    }
  }
  return true;
}

// write_pipe(path, seconds, text...) -> true | nil, reason. Writes to a named
// pipe. Fails if the pipe has no reader for that many seconds, if the reader
// reads nothing for that long, or if it closes the pipe.
static int l_write_pipe(lua_State *L) {
  const char *path = face_checkstr(L, 1);
  double seconds = luaL_checknumber(L, 2);
  for (int i = 3; i <= lua_gettop(L); i++) luaL_checkstring(L, i);
  int fd = pipe_open(path, seconds), e = errno;
  if (fd < 0 && e == ENXIO) {
    lua_pushnil(L);
    lua_pushfstring(L, "no program read the pipe within %f s", seconds);
    return 2;
  }
  if (fd < 0) return failed(L, e);
  // block SIGPIPE, so that a reader that closes the pipe does not end this
  // process
  sigset_t broken, was;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken, &was);
  bool ok = true;
  for (int i = 3; ok && i <= lua_gettop(L); i++) {
    size_t n;
    const char *s = lua_tolstring(L, i, &n);
    ok = pipe_put(fd, s, n, seconds);
  }
  e = errno;
  if (!ok && e == EPIPE) sigtimedwait(&broken, NULL, &(struct timespec){0});
  pthread_sigmask(SIG_SETMASK, &was, NULL);
  close(fd);
  if (!ok) return failed(L, e);
  lua_pushboolean(L, 1);
  return 1;
}

// ---- external text ----

// message(text) -> the text, made safe by face_push_message
static int l_message(lua_State *L) {
  size_t n;
  const char *s = luaL_tolstring(L, 1, &n);
  face_push_message(L, s, n);
  return 1;
}

// visible(text[, lines]) -> the text, made safe by face_push_visible
static int l_visible(lua_State *L) {
  size_t n;
  bool lines = lua_toboolean(L, 2);
  const char *s = luaL_tolstring(L, 1, &n);
  face_push_visible(L, s, n, lines);
  return 1;
}

static int l_isatty(lua_State *L) {
  lua_pushboolean(L, isatty((int)face_checkint(L, 1)));
  return 1;
}

int face_terminal_columns(int fd) {
  const char *said = getenv("COLUMNS");
  char *end = NULL;
  long n = said ? strtol(said, &end, 10) : 0;
  if (n > 0 && n <= INT_MAX && !*end) return (int)n;
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// terminal_columns(fd) -> number of columns of the terminal fd, or nil if the
// number is unknown
static int l_terminal_columns(lua_State *L) {
  int n = face_terminal_columns((int)face_checkint(L, 1));
  if (n > 0) lua_pushinteger(L, n);
  else lua_pushnil(L);
  return 1;
}

void filelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"open_input", l_open_input}, {"open_aside", l_open_aside},
    {"put_in_place", l_put_in_place}, {"write_pipe", l_write_pipe},
    {"file_kind", l_file_kind}, {"is_link", l_is_link},
    {"real_path", l_real_path},
    {"folder_names", l_folder_names},
    {"visible", l_visible},
    {"message", l_message},
    {"isatty", l_isatty}, {"terminal_columns", l_terminal_columns},
    {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
