// Compilations of libcutelua on separate threads. A compilation copies its
// arguments. Its thread then makes a call of the state, as any other thread of
// the application could.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/signals.h"
#include "library/call.h"

// This bit marks a reference to a compilation. Other references are to Lua
// values.
#define JOB_BIT ((cutelua_ref)1 << 63)

struct Job {
  Job *next;
  cutelua_state *state;
  cutelua_ref ref;
  Task task;
  void *copies;            // copies of the arguments
  pthread_t thread;
  cutelua_status status;
  LastError error;
  bool done;
};

// ---- copies of arguments ----

// Memory for copies. n counts the copied bytes. If p is NULL, nothing is
// copied, and n counts the bytes that the copies will need.
typedef struct Room {
  char *p;
  size_t n;
} Room;

static void *put(Room *r, const void *from, size_t n) {
  void *to = r->p ? r->p + r->n : NULL;
  if (to && n) memcpy(to, from, n);
  r->n += (n + 15) & ~(size_t)15;
  return to;
}

static const char *put_text(Room *r, const char *s) {
  return s ? put(r, s, strlen(s) + 1) : NULL;
}

static void put_arg(Room *r, cutelua_arg *a) {
  a->name = put_text(r, a->name);
  if (a->type == CUTELUA_STRING) a->as.string = put_text(r, a->as.string);
  if (a->type != CUTELUA_TENSOR) return;
  cutelua_tensor *t = &a->as.tensor;
  size_t n = t->rank > 0 && t->rank <= MOST_RANK ? (size_t)t->rank : 0;
  t->dtype = put_text(r, t->dtype);
  if (t->shape) t->shape = put(r, t->shape, n * sizeof *t->shape);
  if (t->stride) t->stride = put(r, t->stride, n * sizeof *t->stride);
}

// Sets *to to a copy of task *from. Copies the arguments and options of the
// task to r.
static void put_task(Room *r, Task *to, const Task *from) {
  cutelua_arg *args = put(r, from->args, from->nargs * sizeof *args);
  for (size_t i = 0; i < from->nargs; i++) {
    cutelua_arg a = from->args[i];
    put_arg(r, &a);
    if (args) args[i] = a;
  }
  to->args = args;
  to->launch = NULL;
  if (!from->launch) return;
  cutelua_launch_options *o = put(r, from->launch, from->launch->size);
  const char *device = put_text(r, from->launch->device);
  if (o) o->device = device;
  to->launch = o;
}

// ---- jobs ----

static void job_free(Job *j) {
  error_free(&j->error);
  free(j->copies);
  free(j);
}

static void *work(void *p) {
  Job *j = p;
  cutelua_state *s = j->state;
  LastError e = {0};
  cutelua_status status = call_run(&j->task, &e);
  pthread_mutex_lock(&s->job_lock);
  j->status = status;
  j->error = e;
  j->done = true;
  pthread_cond_broadcast(&s->job_done);
  pthread_mutex_unlock(&s->job_lock);
  return NULL;
}

static cutelua_status start(Job *j) {
  cutelua_state *s = j->state;
  SigHold hold;
  pthread_mutex_lock(&s->job_lock);
  j->ref = JOB_BIT | ++s->last_job;
  signals_hold(&hold);
  int failed = pthread_create(&j->thread, NULL, work, j);
  signals_release(&hold);
  if (!failed) {
    j->next = s->jobs;
    s->jobs = j;
  }
  pthread_mutex_unlock(&s->job_lock);
  return failed ? CUTELUA_MEMORY : CUTELUA_OK;
}

// Finds job `ref` in the list of jobs. Returns the address of the list's
// pointer to this job, or NULL if there is no such job. The caller holds
// job_lock.
static Job **find(cutelua_state *s, cutelua_ref ref) {
  Job **at = &s->jobs;
  while (*at && (*at)->ref != ref) at = &(*at)->next;
  return *at ? at : NULL;
}

bool job_release(cutelua_state *s, cutelua_ref ref) {
  if (!(ref & JOB_BIT)) return false;
  pthread_mutex_lock(&s->job_lock);
  Job **at = find(s, ref), *j = at ? *at : NULL;
  if (j) *at = j->next;
  pthread_mutex_unlock(&s->job_lock);
  if (!j) return true;
  pthread_join(j->thread, NULL);
  job_free(j);
  return true;
}

void jobs_end(cutelua_state *s) {
  for (Job *j = s->jobs, *next; j; j = next) {
    next = j->next;
    pthread_join(j->thread, NULL);
    job_free(j);
  }
  s->jobs = NULL;
}

// ---- the C functions ----

static Task task_of(cutelua_state *s, cutelua_ref kernel,
                    const cutelua_arg *args, size_t nargs,
                    const cutelua_launch_options *launch) {
  return (Task){.state = s, .ref = kernel, .args = args, .nargs = nargs,
                .launch = launch, .compile = true};
}

cutelua_status cutelua_compile(cutelua_state *s, cutelua_ref kernel,
                               const cutelua_arg *args, size_t nargs,
                               const cutelua_launch_options *launch) {
  Task t = task_of(s, kernel, args, nargs, launch);
  return call_run(&t, NULL);
}

cutelua_status cutelua_compile_start(cutelua_state *s, cutelua_ref kernel,
                                     const cutelua_arg *args, size_t nargs,
                                     const cutelua_launch_options *launch,
                                     cutelua_ref *job) {
  if (!s || !job || nargs > MOST_ARGS || (nargs && !args) ||
      (launch && (launch->size < sizeof *launch || launch->size > 4096)))
    return CUTELUA_MISUSE;
  *job = 0;
  cutelua_status status = state_check(s);
  if (status != CUTELUA_OK) return status;
  Task from = task_of(s, kernel, args, nargs, launch), none;
  Room r = {0};
  put_task(&r, &none, &from);
  Job *j = calloc(1, sizeof *j);
  if (j) j->copies = calloc(1, r.n + 1);
  if (!j || !j->copies) {
    free(j);
    return CUTELUA_MEMORY;
  }
  r = (Room){.p = j->copies};
  j->state = s;
  j->task = from;
  put_task(&r, &j->task, &from);
  status = start(j);
  if (status == CUTELUA_OK) *job = j->ref;
  else job_free(j);
  return status;
}

// Returns the status of a finished job, and copies its error to the state.
static cutelua_status outcome(cutelua_state *s, cutelua_ref job) {
  LastError e = {0};
  pthread_mutex_lock(&s->job_lock);
  Job **at = find(s, job);
  cutelua_status status = at ? (*at)->status : CUTELUA_MISUSE;
  if (at) {
    e = (*at)->error;
    e.text = e.text ? strdup(e.text) : NULL;
  }
  pthread_mutex_unlock(&s->job_lock);
  if (status == CUTELUA_OK) return status;
  cutelua_status entered = state_enter(s);
  if (entered != CUTELUA_OK) {
    error_free(&e);
    return entered;
  }
  if (!at) state_misuse(s, "reference %llu names no compilation",
                        (unsigned long long)job);
  else s->error = e;
  return state_leave(s, status);
}

cutelua_status cutelua_wait(cutelua_state *s, cutelua_ref job,
                            uint64_t milliseconds) {
  cutelua_status status = state_check(s);
  if (status != CUTELUA_OK) return status;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  uint64_t most = (uint64_t)1000 * 86400 * 365 * 10;
  if (milliseconds > most) milliseconds = most;
  uint64_t ns = (uint64_t)until.tv_nsec + milliseconds % 1000 * 1000000;
  until.tv_sec += (time_t)(milliseconds / 1000 + ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  int over = 0;
  bool pending = false;
  pthread_mutex_lock(&s->job_lock);
  for (;;) {
    Job **at = find(s, job);
    pending = at && !(*at)->done;
    if (!pending || over) break;
    over = milliseconds == 0 ||
           pthread_cond_timedwait(&s->job_done, &s->job_lock, &until) ==
             ETIMEDOUT;
  }
  pthread_mutex_unlock(&s->job_lock);
  return pending ? CUTELUA_PENDING : outcome(s, job);
}

cutelua_status cutelua_poll(cutelua_state *s, cutelua_ref job) {
  return cutelua_wait(s, job, 0);
}
// SPDX-License-Identifier: MIT
