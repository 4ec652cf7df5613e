--- Checks PTX instructions against golden data (results of a GPU) in the folder
-- golden-ptx, which is next to CUTELUA_GOLDEN_DIR. The simulator runs the same
-- PTX. A line has many cases of a variant of an instruction. Either all results
-- must be equal, or the PTX reader must reject the PTX and name the
-- instruction.
local cute = require "cute"
local golden = require "spec.golden"

local variants = {}

-- ---- a kernel around the text of a variant ----

-- bytes of each operand and each result in the kernel's arguments
local EACH = 8
local OWN = 256   -- bytes of memory that belong to one test case

-- Returns the width in bits of a register of this type.
local function register_bits(type)
  local n = math.tointeger(tonumber(type:match "^%a+(%d+)")) or 32
  if type:match "^e%dm%dx2$" then return 16 end
  if type:match "x2$" then n = 2 * n end
  return math.max(n, type:match "^%a*8$" and 32 or 16)
end

local function memory_bits(type)
  if type:match "^[bsu]8$" then return 8 end
  return register_bits(type)
end

local function declare(add, types, letter)
  for k, type in ipairs(types) do
    local is = type == "pred" and "pred" or "b" .. register_bits(type)
    add(".reg .%s %s%d;", is, letter, k - 1)
  end
end

-- Returns the number of bytes of a case's operands, padded so that the operands
-- of the next case begin at a multiple of 16 bytes.
local function operand_bytes(v) return (#v["in"] + 2) // 2 * 16 end

local HEAD = [[
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pmem)
{
.shared .align 16 .b8 all_shared[%d];
.reg .b64 to_in, to_out, to_own, step;
.reg .b32 thread, case_at, width, own_shared, word;
.reg .pred there;
ld.param.u64 to_in, [pin]; ld.param.u64 to_out, [pout];
ld.param.u64 to_own, [pmem];
mov.u32 thread, %%tid.x; mov.u32 case_at, %%ctaid.x; mov.u32 width, %%ntid.x;
mad.lo.u32 case_at, case_at, width, thread;
mul.wide.u32 step, case_at, %d; add.s64 to_in, to_in, step;
mul.wide.u32 step, case_at, %d; add.s64 to_out, to_out, step;
mul.wide.u32 step, case_at, %d; add.s64 to_own, to_own, step;
mul.lo.u32 own_shared, thread, 64; mov.u32 word, all_shared;
add.u32 own_shared, own_shared, word;]]

local function load_operands(add, v)
  for k, type in ipairs(v["in"]) do
    if type == "pred" then
      add("ld.global.b32 word, [to_in+%d]; setp.ne.b32 a%d, word, 0;",
          (k - 1) * EACH, k - 1)
    else
      add("ld.global.b%d a%d, [to_in+%d];", register_bits(type), k - 1,
          (k - 1) * EACH)
    end
  end
  add("ld.global.b32 word, [to_in+%d]; setp.ne.b32 there, word, 0;",
      #v["in"] * EACH)
end

-- Emits PTX that copies words `first` to `last` of a case between registers and
-- the memory that operand [m] addresses.
local function move_memory(add, v, place, first, last, store)
  local at, types = 0, store and v["in"] or v.out
  local space = place == "own_shared" and "shared" or "global"
  for k = first, last do
    local bits = memory_bits(types[k])
    if store then add("st.%s.b%d [%s+%d], a%d;", space, bits, place, at, k - 1)
    else add("ld.%s.b%d d%d, [%s+%d];", space, bits, k - 1, place, at) end
    at = at + bits // 8
  end
end

local function store_results(add, v)
  for k, type in ipairs(v.out) do
    if type == "pred" then
      add("selp.b32 word, 1, 0, d%d; st.global.b32 [to_out+%d], word;", k - 1,
          (k - 1) * EACH)
    else
      add("st.global.b%d [to_out+%d], d%d;", register_bits(type),
          (k - 1) * EACH, k - 1)
    end
  end
end

--- Returns the PTX of a kernel that computes a variant's cases, one in each
-- thread or warp.
function variants.text(v)
  local lines = {HEAD:format(64 * 32, operand_bytes(v), #v.out * EACH,
                             OWN)}
  local function add(...) lines[#lines + 1] = string.format(...) end
  declare(add, v["in"], "a")
  declare(add, v.out, "d")
  load_operands(add, v)
  local body, memory = v.text, v.memory
  local place = "to_own"
  if memory then
    if body:find "%f[%w]shared%f[%W]" then place = "own_shared" end
    if memory[2] == 0 and place == "to_own" then place = "to_in" end
    if place ~= "to_in" then
      move_memory(add, v, place, 1, memory[1], true)
    end
    body = body:gsub("%[m%f[%]%+]", "[" .. place)
               :gsub("%[a%f[%]%+]", "[to_in")
  elseif v.kind ~= "warp" then
    body = body:gsub("%f[%w]a;", "to_in;")
  end
  local together = v.op:find "^activemask"
  if together then
    add "mov.u32 word, %%lanemask_eq; and.b32 word, word, a0;"
    add "setp.ne.b32 there, word, 0; mov.b32 d0, 0; @!there bra BACK;"
  elseif v.kind == "warp" then
    add "@!there bra OUT;"
  end
  lines[#lines + 1] = "{ " .. body .. " }"
  if together then add "BACK: bar.warp.sync 0xffffffff;" end
  if memory and memory[2] > 0 then
    move_memory(add, v, place, #v.out - memory[2] + 1, #v.out, false)
  end
  store_results(add, v)
  add "OUT: ret;\n}"
  return table.concat(lines, "\n") .. "\n"
end

-- ---- words ----

local function word(x)
  local n = 0
  for digit in tostring(x):gmatch "%x" do n = n << 4 | tonumber(digit, 16) end
  return n
end

-- Returns word k of a list. If it is a list of words, returns the word of
-- `lane`, or nil if there is none.
local function pick(list, k, lane)
  local x = list[k]
  if type(x) ~= "table" then return x end
  return x[lane]
end

local function fill(v, into, lanes)
  local n, each = #v["in"], operand_bytes(v) // EACH
  for c, case in ipairs(v.cases) do
    for lane = 1, lanes do
      local at = ((c - 1) * lanes + lane - 1) * each
      for k = 1, n do
        local x = pick(case, k, lane)
        if x then into[at + k - 1] = word(x) end
      end
      local there = true
      for k = 1, #v.out do
        there = there and pick(v.results[c], k, lane) ~= nil
      end
      into[at + n] = there and 1 or 0
    end
  end
end

local function differing(v, from, lanes)
  local n = #v.out
  for c, want in ipairs(v.results) do
    for lane = 1, lanes do
      for k = 1, n do
        local x = pick(want, k, lane)
        local got = from[((c - 1) * lanes + lane - 1) * n + k - 1]
        if x and got ~= word(x) then
          return ("case %d, lane %d: result %d is %x, not %s"):format(
            c, lane - 1, k, got, x)
        end
      end
    end
  end
end

-- Returns the largest number of threads, at most 32, that divides the number of
-- cases.
local function block_of(n)
  local block = math.min(n, 32)
  while n % block ~= 0 do block = block - 1 end
  return block
end

-- ---- a variant ----

local function run(v)
  local lanes = v.kind == "warp" and 32 or 1
  local total = #v.cases * lanes
  local from = cute.zeros({total * operand_bytes(v) // EACH}, cute.u64)
  local to = cute.zeros({total * #v.out}, cute.u64)
  local own = cute.zeros({total * OWN // 8}, cute.u64)
  fill(v, from, lanes)
  local block = lanes == 32 and 32 or block_of(total)
  local k = cute.ptx(variants.text(v)):kernel "k"
  k(from, to, own):launch {grid = total // block, block = block,
                           device = "sim:sm_90a"}
  return to, lanes
end

--- Returns the first result of each case of a variant that runs one case per
-- thread.
function variants.results(v)
  local to, list = run(v), {}
  for c = 1, #v.cases do list[c] = to[(c - 1) * #v.out] end
  return list
end

--- Runs a variant. Returns true if all cases are equal. Otherwise returns false
-- and the first different case, or "rejected" and the PTX reader's message.
function variants.check(v)
  local ok, to, lanes = pcall(run, v)
  if not ok then
    local text = tostring(to)
    if not text:find("bad-ptx", 1, true) then return false, text end
    return "rejected", text:match "line %d+: ([^\n]*)"
  end
  local wrong = differing(v, to, lanes)
  if wrong then return false, wrong end
  return true
end

--- Checks an instruction that ptxas rejects for sm_90a. If a newer target has
-- the instruction, our reader must reject it and name that target. If none has,
-- the reader may accept it.
function variants.rejected(v)
  local types = {}
  for k = 0, 3 do types[k + 1] = v.text:find("a" .. k) and "b32" or nil end
  local case = {text = v.text, ["in"] = types, out = {"b32"}, op = v.op,
                cases = {}, results = {}}
  local ok, message = pcall(function()
    local k = cute.ptx(variants.text(case)):kernel "k"
    local x = cute.zeros({64}, cute.u64)
    k(x, x, x):trace {block = 1, arch = "sm_90a"}
  end)
  local named = tostring(message):find(v.later and "sm_100" or "bad-ptx", 1,
                                       true)
  if ok then return not v.later, "it is taken" end
  return named ~= nil, tostring(message)
end

for _, file in ipairs {"float", "compare", "integer", "cvt", "memory",
                       "warp"} do
  golden.families[file] = true
  golden.ops[file] = setmetatable({}, {__index = function()
    return variants.check
  end})
end
golden.families.rejected = true
golden.ops.rejected = setmetatable({}, {__index = function()
  return variants.rejected
end})

return variants
-- SPDX-License-Identifier: MIT
