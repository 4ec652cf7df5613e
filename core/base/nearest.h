// Suggests the existing name that a misspelt name most likely means.
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

// Returns how many edits turn one name into the other, ignoring case. An edit
// inserts, deletes or changes a character, or swaps two neighbours. Only the
// first NEAREST_LONGEST bytes are compared.
enum { NEAREST_LONGEST = 160 };
int nearest_edits(const char *a, size_t na, const char *b, size_t nb);

typedef struct Nearest {
  const char *name;  // unknown name
  size_t name_len;
  const char *best;  // the best candidate so far; NULL: none is near
  size_t best_len;
  int edits;
} Nearest;

Nearest nearest_of(const char *name);
// Compares the unknown name with the candidate s of n letters. Stores the
// pointer s if s is the best candidate so far. A candidate is near if at most a
// third of the letters of the unknown name differ, or if it begins with the
// unknown name. A name of one letter is near only to the same letter in the
// other case. If the unknown name belongs to another language (synonyms.h), the
// best candidate is cutelua's name for the same object. Of equally near
// candidates, the alphabetically first one is the best.
void nearest_offer(Nearest *to, const char *s, size_t n);
// Calls nearest_offer for each word of a space-separated list.
void nearest_offer_words(Nearest *to, const char *list);

#endif
// SPDX-License-Identifier: MIT
