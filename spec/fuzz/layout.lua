-- Fuzzes the parser of layouts and the layout algebra with libFuzzer:
-- `layout.lua SECONDS`.
package.path = "./?.lua;" .. package.path
local libfuzzer = require "spec.libfuzzer"

local seconds = tonumber(arg[1]) or 60
libfuzzer.run("layout", "spec/layout/fuzz.c", {"base", "atoms", "ir", "layout"},
              ("-max_total_time=%d -max_len=200"):format(seconds))
print(("layout: %d seconds without a crash, a leak or a wrong answer")
  :format(seconds))
-- SPDX-License-Identifier: MIT
