// Records of the properties of GPUs. The file gpu-N in the cache is the record
// of GPU N: one line with a hash of the machine's state, and the properties.
#define _POSIX_C_SOURCE 200809L
#include "gpu/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/cache.h"
#include "gpu/dl.h"

// Environment variables that select the GPU with a number.
static const char *const SELECT[] = {"CUDA_VISIBLE_DEVICES",
                                     "CUDA_DEVICE_ORDER",
                                     "NVIDIA_VISIBLE_DEVICES"};

// The number of device files that may belong to GPUs of a machine.
enum { DEVICES = 16 };

static uint64_t add(uint64_t h, const char *s) {
  return base_hash(h, s, strlen(s) + 1);
}

// Returns a hash of everything that a record depends on. Returns 0 if the
// driver is a substitute, which has no library.
static uint64_t state_of(const Gpu *g) {
  const char *path = dl_cuda_path();
  struct stat st;
  if (!*path || stat(path, &st) != 0) return 0;
  uint64_t h = add(base_hash(0, &g->driver, sizeof g->driver), path);
  long long file[3] = {(long long)st.st_size, (long long)st.st_mtim.tv_sec,
                       (long long)st.st_mtim.tv_nsec};
  h = base_hash(h, file, sizeof file);
  for (size_t k = 0; k < sizeof SELECT / sizeof *SELECT; k++) {
    const char *v = getenv(SELECT[k]);
    h = add(add(h, v ? "set" : "unset"), v ? v : "");
  }
  for (int k = 0; k < DEVICES; k++) {
    char device[24];
    snprintf(device, sizeof device, "/dev/nvidia%d", k);
    h = add(h, access(device, R_OK | W_OK) == 0 ? device : "");
  }
  // The identifier is different after each start of the machine.
  char boot[64] = "";
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (f) {
    if (!fgets(boot, sizeof boot, f)) *boot = '\0';
    fclose(f);
  }
  return *boot ? add(h, boot) | 1 : 0;
}

static void name_of(const Gpu *g, char name[24]) {
  snprintf(name, 24, "gpu-%d", g->ordinal);
}

bool known_read(Gpu *g) {
  uint64_t state = state_of(g);
  if (!state) return false;
  Cache c;
  cache_open(&c);
  char name[24], text[400];
  name_of(g, name);
  unsigned long long was = 0;
  Gpu k = *g;
  bool ok = c.on && cache_read(&c, name, text, sizeof text) &&
            sscanf(text, "%llx %d %d %d %d %d %d %zu %127[^\n]\n", &was,
                   &k.major, &k.minor, &k.sms, &k.smem_optin, &k.l2, &k.khz,
                   &k.memory, k.name) == 9 &&
            was == state;
  cache_close(&c);
  if (ok) *g = k;
  return ok;
}

void known_write(const Gpu *g) {
  uint64_t state = state_of(g);
  if (!state) return;
  Cache c;
  cache_open(&c);
  char name[24], text[400];
  name_of(g, name);
  int n = snprintf(text, sizeof text, "%llx %d %d %d %d %d %d %zu %s\n",
                   (unsigned long long)state, g->major, g->minor, g->sms,
                   g->smem_optin, g->l2, g->khz, g->memory, g->name);
  if (c.on) cache_write(&c, name, text, (size_t)n);
  cache_close(&c);
}

void known_remove(const Gpu *g) {
  Cache c;
  cache_open(&c);
  char name[24];
  name_of(g, name);
  if (c.on) cache_write(&c, name, "", 0);
  cache_close(&c);
}

bool known_same(const Gpu *a, const Gpu *b) {
  return a->major == b->major && a->minor == b->minor && a->sms == b->sms &&
         a->smem_optin == b->smem_optin && a->l2 == b->l2 &&
         a->khz == b->khz && a->memory == b->memory &&
         strcmp(a->name, b->name) == 0;
}
// SPDX-License-Identifier: MIT
