// Computes edit distances between names, and finds the nearest name of a list.
// If a name belongs to another language (synonyms.h), the nearest name is
// cutelua's name for the same object.
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/nearest.h"
#include "base/synonyms.h"

static char lower(char c) {
  return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int least(int a, int b) { return a < b ? a : b; }

int nearest_edits(const char *a, size_t na, const char *b, size_t nb) {
  enum { N = NEAREST_LONGEST };
  int rows[3][N + 1], *before = rows[0], *row = rows[1], *next = rows[2];
  if (na > N) na = N;
  if (nb > N) nb = N;
  for (size_t j = 0; j <= nb; j++) row[j] = (int)j;
  for (size_t i = 1; i <= na; i++) {
    char x = lower(a[i - 1]);
    next[0] = (int)i;
    for (size_t j = 1; j <= nb; j++) {
      char y = lower(b[j - 1]);
      next[j] = least(least(row[j], next[j - 1]) + 1, row[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
        next[j] = least(next[j], before[j - 2] + 1);
    }
    int *oldest = before;
    before = row;
    row = next;
    next = oldest;
  }
  return row[nb];
}

Nearest nearest_of(const char *name) {
  return (Nearest){.name = name, .name_len = strlen(name), .edits = INT_MAX};
}

// Reports whether a word of n letters is in a space-separated list.
static bool is_listed(const char *list, const char *word, size_t n) {
  for (size_t k; *(list += strspn(list, " ")); list += k) {
    k = strcspn(list, " ");
    if (k == n && memcmp(list, word, n) == 0) return true;
  }
  return false;
}

// Reports whether the unknown name is another language's name (synonyms.h) for
// the candidate s of n letters.
static bool is_synonym(const Nearest *to, const char *s, size_t n) {
  static const char *const rows[][2] = {
#define SYN(foreign, own) {foreign, own},
    SYNONYMS(SYN)
#undef SYN
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    if (strlen(rows[k][1]) == n && memcmp(rows[k][1], s, n) == 0 &&
        is_listed(rows[k][0], to->name, to->name_len))
      return true;
  return false;
}

// Reports whether the candidate s precedes the current best candidate in
// alphabetical order.
static bool before(const char *s, size_t n, const Nearest *to) {
  size_t both = n < to->best_len ? n : to->best_len;
  int order = memcmp(s, to->best, both);
  return order ? order < 0 : n < to->best_len;
}

void nearest_offer(Nearest *to, const char *s, size_t n) {
  int most = (int)to->name_len / 3;
  int d = is_synonym(to, s, n) ? -1
                               : nearest_edits(to->name, to->name_len, s, n);
  bool begins = to->name_len > 3 && n >= to->name_len &&
                memcmp(s, to->name, to->name_len) == 0;
  if (d > 0 && to->name_len < 2) return;
  if ((d > most && d > 1 && !begins) || d > to->edits) return;
  if (d == to->edits && !before(s, n, to)) return;
  to->best = s;
  to->best_len = n;
  to->edits = d;
}

void nearest_offer_words(Nearest *to, const char *list) {
  for (size_t n; *(list += strspn(list, " ")); list += n) {
    n = strcspn(list, " ");
    nearest_offer(to, list, n);
  }
}
// SPDX-License-Identifier: MIT
