// An NVRTC that compiles nothing: its CUBIN is a text that names its version,
// the target and the source's hash. Specs build it under the names of real
// libraries.
//   VERSION   13,9: the version, a macro
//   ARCHS     75,80,90: the targets that it knows, a macro
//   FAKE_LOG  a file that receives a line for each compilation
//   FAKE_PID  if set, the lines end in the process's number
//   FAKE_MS   milliseconds that a compilation takes
// A source that contains CRASH ends the process by a signal. One that contains
// BAD is rejected. One that contains CHATTY makes it write half a line to
// standard error. One that contains BIG becomes a CUBIN of a MiB. While a
// source that contains CTRL-C is compiled, the process gets SIGINT and then
// ignores SIGINT for a moment, as NVRTC does in a process's first compilation.
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/cudaapi.h"

static const int version[] = {VERSION}, archs[] = {ARCHS};

struct _nvrtcProgram {
  char *source, *cubin;
  size_t n;
  char log[200];
};

nvrtcResult nvrtcVersion(int *major, int *minor) {
  return *major = version[0], *minor = version[1], NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetNumSupportedArchs(int *n) {
  return *n = (int)(sizeof archs / sizeof *archs), NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int *list) {
  return memcpy(list, archs, sizeof archs), NVRTC_SUCCESS;
}
const char *nvrtcGetErrorString(nvrtcResult r) {
  return r == NVRTC_ERROR_COMPILATION ? "COMPILATION" : "OTHER";
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram *p, const char *source,
                               const char *name, int n, const char *const *a,
                               const char *const *b) {
  (void)name, (void)n, (void)a, (void)b;
  *p = calloc(1, sizeof **p);
  (*p)->source = strdup(source);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p) {
  free((*p)->source);
  free((*p)->cubin);
  free(*p);
  return *p = NULL, NVRTC_SUCCESS;
}

static void tell(const char *arch) {
  const char *file = getenv("FAKE_LOG");
  char line[100];
  if (!file) return;
  int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
  int n = snprintf(line, sizeof line, "%d.%d %s", version[0], version[1],
                   arch);
  n += snprintf(line + n, 40, getenv("FAKE_PID") ? " %d\n" : "\n",
                (int)getpid());
  if (write(fd, line, (size_t)n) != n) abort();
  close(fd);
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *o) {
  const char *ms = getenv("FAKE_MS");
  const char *arch = "?";
  for (int i = 0; i < n; i++)
    if (strncmp(o[i], "--gpu-architecture=", 19) == 0) arch = o[i] + 19;
  tell(arch);
  if (ms)
    nanosleep(&(struct timespec){atol(ms) / 1000, atol(ms) % 1000 * 1000000},
              NULL);
  if (strstr(p->source, "CRASH")) abort();
  if (strstr(p->source, "CTRL-C")) {
    kill(getpid(), SIGINT);
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    signal(SIGINT, signal(SIGINT, SIG_IGN));
  }
  if (strstr(p->source, "CHATTY")) fputs("words without an end", stderr);
  if (strstr(p->source, "BAD")) {
    snprintf(p->log, sizeof p->log, "k.cu(1): error: BAD\n");
    return NVRTC_ERROR_COMPILATION;
  }
  unsigned long long hash = 5381;
  for (const char *s = p->source; *s; s++)
    hash = hash * 33 + (unsigned char)*s;
  p->n = strstr(p->source, "BIG") ? 1 << 20 : 128;
  p->cubin = calloc(1, p->n);
  snprintf(p->cubin, p->n, "\x7f" "ELF cubin %d.%d %s %llx", version[0],
           version[1], arch, hash);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n) {
  return *n = strlen(p->log) + 1, NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *s) {
  return strcpy(s, p->log), NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n) {
  return *n = p->n, NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *s) {
  return memcpy(s, p->cubin, p->n), NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n) {
  return *n = p->n, NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *s) {
  return memcpy(s, p->cubin, p->n), NVRTC_SUCCESS;
}
// SPDX-License-Identifier: MIT
