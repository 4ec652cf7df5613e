// Which of the names that there are was meant by one that is not there.
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

// Edits (insert, delete, change, swap of neighbours) between two names,
// letters' case counting nothing. Of longer names the first LONGEST bytes.
enum { NEAREST_LONGEST = 160 };
int nearest_edits(const char *a, size_t na, const char *b, size_t nb);

typedef struct Nearest {
  const char *name;  // that is not there
  size_t name_len;
  const char *best;  // NULL while none is near
  size_t best_len;
  int edits;
} Nearest;

Nearest nearest_of(const char *name);
// Offers a candidate, which is kept by its address. Near is what is a third of
// the name away, or goes on where it ends; of several the first by the
// alphabet, whatever their order.
void nearest_offer(Nearest *to, const char *s, size_t n);
// Offers each word of a list, separated by spaces.
void nearest_offer_words(Nearest *to, const char *list);

#endif
