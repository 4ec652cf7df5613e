#!/bin/sh
# check.sh [PATH...]: checks the scripts and captured launches below paths (the
# current folder) with `cutelua ci`, and tests of pytest, and writes reports.
# docs/ci.md has a page about it. Environment variables:
#   CUTELUA           the program, a Debian package of a release, or a folder
#                     with the sources (cutelua)
#   CUTELUA_PYTEST    the arguments of pytest, such as "tests" (no pytest)
#   CUTELUA_PYTHON    the Python that has pytest and cutelua's wheel (python3)
#   CUTELUA_OPTIONS   further options of `cutelua ci`
#   CUTELUA_REPORTS   the folder of the reports (cutelua-reports)
#   CUTELUA_VERDICTS  the folder of kept verdicts (.cutelua/verdicts)
# Options are divided at blanks.
set -eu
reports=${CUTELUA_REPORTS:-cutelua-reports}
program=${CUTELUA:-cutelua}
fail() {
  echo "check.sh: $1" >&2
  exit "${2:-1}"
}

mkdir -p "$reports"
case $program in
  *.deb)
    mkdir -p .cutelua/program
    dpkg-deb -x "$program" .cutelua/program ||
      fail "CUTELUA: cannot unpack $program"
    program=.cutelua/program/usr/bin/cutelua ;;
  *)
    if [ -d "$program" ]; then
      (cd "$program" && sh tools/setup.sh build &&
        make -s -j "$(getconf _NPROCESSORS_ONLN)" build/cutelua) >&2 ||
        fail "CUTELUA: cannot build the sources in $program"
      program=$program/build/cutelua
    fi ;;
esac
command -v "$program" >/dev/null ||
  fail "there is no program $program: set CUTELUA to the program, to a Debian \
package of a release, or to a folder with the sources"

[ $# -gt 0 ] || [ -n "${CUTELUA_PYTEST:-}" ] || set -- .
if [ -n "${CUTELUA_PYTEST:-}" ]; then
  record=$reports/pytest.json
  rm -f "$record"
  # shellcheck disable=SC2086  # lists of words
  "${CUTELUA_PYTHON:-python3}" -m pytest --cutelua-findings "$record" \
    $CUTELUA_PYTEST || code=$?
  [ -f "$record" ] || fail "pytest wrote no findings; does \
${CUTELUA_PYTHON:-python3} have pytest and cutelua's wheel?" "${code:-1}"
  set -- --add "$record" "$@"
fi
# shellcheck disable=SC2086
exec "$program" ci --sarif "$reports/cutelua.sarif" \
  --gitlab "$reports/code-quality.json" --badge "$reports/badge.svg" \
  --cache "${CUTELUA_VERDICTS:-.cutelua/verdicts}" \
  --jobs "$(getconf _NPROCESSORS_ONLN)" ${CUTELUA_OPTIONS:-} "$@"
# SPDX-License-Identifier: MIT
