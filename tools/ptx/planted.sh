#!/bin/sh
# Plants all faults in the PTX of all compilers, and prints a table of how many
# are reported at their line: sh tools/ptx/planted.sh BUILD. Exits with 1 if
# less than 98 % are.
set -eu
bad=0
rows=$1/planted.tsv
: > "$rows"
for name in triton dsl compilers; do
  sh tools/ptx/compare.sh "$1" "$name" --seeds 4 --planted "$rows" || bad=1
done
awk -F '\t' '
  { if (!($1 in all)) order[++n] = $1
    all[$1]++; total++
    if ($4 == "reported") { right[$1]++; good++ } }
  END {
    printf "\n%-12s%9s%10s\n", "compiler", "planted", "reported"
    for (i = 1; i <= n; i++)
      printf "%-12s%9d%10d\n", order[i], all[order[i]], right[order[i]]
    printf "%-12s%9d%10d  %.1f %%\n", "all", total, good, 100 * good / total
    exit good < 0.98 * total }' "$rows" || bad=1
exit $bad
