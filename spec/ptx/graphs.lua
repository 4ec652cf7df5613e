--- Makes random control flow in PTX, and interprets it lane by lane.
--
-- A graph is a list of blocks. A block is the list of the blocks where a lane
-- may continue, its targets: {to}, {to, other} or {}. Each block mixes its
-- number into the lane's hash `h` and counts a step. Bit 13 of the hash chooses
-- between two targets. A lane ends after `steps` steps, or at a block without
-- targets, and stores its hash.
local graphs = {}

local STEPS = 40
graphs.LANES = 32

--- Returns a random graph of at most `most` blocks.
---@param random fun(n: integer): integer 0 .. n - 1
function graphs.random(random, most)
  local n = 1 + random(most)
  local near = random(2) == 0
  local function target(i)
    if not near then return 1 + random(n) end
    local to = i + 1 + random(3)
    if random(5) == 0 then to = i - random(i) end
    return math.min(math.max(to, 1), n)
  end
  local list = {}
  for i = 1, n do
    local kind = random(8)
    list[i] = kind == 0 and {} or kind < 4 and {target(i)}
      or {target(i), target(i)}
  end
  return list
end

--- Returns the graph as PTX with an entry `k(out)`.
function graphs.ptx(graph)
  local text = {[[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r2, 0;
  mad.lo.u32 %r1, %r0, 40503, 977;]]}
  local function add(...) text[#text + 1] = string.format(...) end
  for i, to in ipairs(graph) do
    add("B%d:", i)
    add("  mad.lo.u32 %%r1, %%r1, 1664525, %d;", i)
    add("  add.u32 %%r2, %%r2, 1;")
    add("  setp.ge.u32 %%p0, %%r2, %d;", STEPS)
    add("  @%%p0 bra END;")
    if #to == 2 then
      add("  shr.u32 %%r3, %%r1, 13; and.b32 %%r3, %%r3, 1;")
      add("  setp.ne.u32 %%p1, %%r3, 0;")
      add("  @%%p1 bra B%d;", to[1])
      add("  bra B%d;", to[2])
    elseif #to == 1 then
      add("  bra B%d;", to[1])
    else
      add("  bra END;")
    end
  end
  add([[
END:
  ld.param.u64 %%rd0, [out];
  mul.wide.u32 %%rd1, %%r0, 4;
  add.s64 %%rd2, %%rd0, %%rd1;
  st.global.u32 [%%rd2], %%r1;
  ret;
}]])
  return table.concat(text, "\n") .. "\n"
end

--- Returns the value that lane `tid` stores.
function graphs.run(graph, tid)
  local h, steps, at = (tid * 40503 + 977) & 0xffffffff, 0, 1
  while true do
    h = (h * 1664525 + at) & 0xffffffff
    steps = steps + 1
    local to = graph[at]
    if steps >= STEPS or #to == 0 then return h end
    at = to[#to == 2 and (h >> 13 & 1) == 0 and 2 or 1]
  end
end

return graphs
-- SPDX-License-Identifier: MIT
