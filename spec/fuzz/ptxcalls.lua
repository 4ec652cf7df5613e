-- Launches PTX texts in which random parts are cut and random tokens exchanged,
-- with random arguments. Usage: `ptxcalls.lua SECONDS [SEED]`. Each error must
-- have a kind in brackets at the end of its first line. An error without a kind
-- is printed with its seed, and the exit code is 1. If a process dies,
-- build/ptxcalls.txt has its seed (under ASan: BUILD=build-asan).
package.path = "./?.lua;" .. package.path
local attack = require "spec.ptx.attack"
local verdicts = require "spec.verdicts"

verdicts.count("ptxcalls", function(seed)
  local verdict, why = attack.run(seed)
  if verdict == "wrong" then why = why .. "\n" .. attack.text(seed) end
  return verdict, why
end)
-- SPDX-License-Identifier: MIT
