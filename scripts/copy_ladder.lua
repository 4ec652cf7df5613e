-- The copy ladder: measures all copy scripts in one process, and compares each
-- with the previous one and with the driver's copy.
--
--   cutelua scripts/copy_ladder.lua
--   cutelua scripts/copy_ladder.lua --m 65536 --n 8192 --record copies.tsv
--
-- On a GPU it prints TB/s, with interleaved measurements. On the simulator it
-- prints the memory accesses of each kernel.
local copylesson = require "cutelua.bench.copylesson"
local lib = require "cutelua.bench.lessonlib"

-- The rungs of the ladder: the script, the name of its kernel or of its
-- variant, and the difference to the previous rung.
local RUNGS = {
  {"copy_basic", "copy_basic", "an element a thread, through shared memory"},
  {"copy_vector", "copy_vector", "16 bytes a thread"},
  {"copy_async", "copy_async", "past the registers on the way in"},
  {"copy_swizzled", "unswizzled", "another order of threads on the way out"},
  {"copy_swizzled", "copy_swizzled", "no bank conflicts"},
  {"copy_tile", "copy_tile", "no shared memory, a vector a thread"},
  {"copy_tma", "copy_tma", "no thread touches a byte: TMA in, TMA out"},
  {"copy_tma", "multicast", "two blocks of a cluster share what is loaded"},
}

-- Returns a rung: the variant `name` of the script or, if there is none, the
-- script's own lesson.
local function rung(script, name, gain)
  local spec = lib.must({name = "copy_ladder"}, lib.script_spec(
    lib.folder() .. script .. ".lua", "cutelua.bench.copylesson", "run"))
  local out = {name = name, gain = gain}
  local case = spec
  for _, c in ipairs(spec.compare or {}) do
    if c.name == name then case = c end
  end
  for _, field in ipairs {"kernel", "tile", "block", "args", "cluster", "grid",
                          "refuses", "instead"} do
    out[field] = case[field] or spec[field]
  end
  return out
end

local rungs = {}
for i, r in ipairs(RUNGS) do rungs[i] = rung(table.unpack(r)) end

copylesson.run(arg, {
  rungs = rungs, about = "All rungs of the copy ladder in one table.",
})
-- SPDX-License-Identifier: MIT
