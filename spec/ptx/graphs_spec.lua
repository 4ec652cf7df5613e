-- Tests random control flow, reducible and irreducible, against an interpreter
-- that runs lane by lane. CUTE_GRAPHS is the number of graphs (default 200).
local cute = require "cute"
local graphs = require "spec.ptx.graphs"

local COUNT = math.tointeger(os.getenv "CUTE_GRAPHS" or 200)

local function generator(seed)
  local state = seed
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) % n
  end
end

describe("control flow of PTX", function()
  it("ends each lane of random graphs where an interpreter does", function()
    for seed = 1, COUNT do
      local graph = graphs.random(generator(seed), 24)
      local out = cute.zeros({graphs.LANES}, cute.u32)
      cute.ptx(graphs.ptx(graph)):kernel "k"(out):launch {
        grid = 1, block = graphs.LANES, device = "sim"}
      for lane = 0, graphs.LANES - 1 do
        if out[lane] ~= graphs.run(graph, lane) then
          error(("graph %d, lane %d:\n%s"):format(seed, lane,
            graphs.ptx(graph)))
        end
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
