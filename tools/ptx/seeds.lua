-- Runs a kernel, compiled by another compiler, with several seeds: cutelua
-- seeds.lua CASE. CASE is a JSON file that seeds.py writes. It names the reader
-- (`triton`, `dsl` or `ptx`) and the file that the reader reads; for PTX also
-- `entry` and `smem`. It also has the launch's grid, block and cluster, the
-- arguments, the number of seeds, and files for the outputs. The tensors are
-- .npy files. Their names are `x`, or `x:bf16` with a type that NumPy lacks.
-- Prints the number of runs with a report, and the text of the first report.
package.path = arg[0]:gsub("[^/]*$", "?.lua;") .. package.path
local case = require "case".read(assert(arg[1], "CASE is missing"))

local reported, first, buffers = 0, nil, nil
for seed = 1, case.seeds do
  local ok, why
  ok, why, buffers = case:launch {seed = seed, faults = "return"}
  if not ok then
    reported = reported + 1
    first = first or why
  end
end
case:write(buffers)
print(reported)
if first then print(first) end
-- SPDX-License-Identifier: MIT
