--- Finds known faults of NVRTC and ptxas by which a kernel computes wrong
-- results without a message. docs/cache.md has a table of the faults and
-- versions.
--
-- The emitter avoids code that these faults affect. This module searches for
-- such code in kernels that users write in CUDA C: in their text, and in the
-- PTX that NVRTC generates from it.
local faults = {}

-- Returns the union of two sets of names; either set may be nil.
local function union(a, b)
  if not (a and b) then return a or b end
  local out = {}
  for name in pairs(a) do out[name] = true end
  for name in pairs(b) do out[name] = true end
  return out
end

-- Updates the facts f about 64-bit registers for one line of a PTX function.
-- f.of[r]: the parameters to whose memory register r may point. f.chosen[r]:
-- whether r depends on the result of a selp.
local function note_register(f, line)
  local op, to, rest = line:match "^%s*(%l[%w.:_]*)%s+(%%rd%d+),%s*(.-);"
  if not op then return end
  if op:find "^ld%.param" then
    f.of[to] = {[rest:match "%[([^%]+]+)" or rest] = true}
  elseif op:find "^add%.s64" or op:find "^cvta" or op:find "^mov"
      or op:find "^selp" then
    local set, picked = nil, op:find "^selp" ~= nil
    for r in rest:gmatch "%%rd%d+" do
      set = union(set, f.of[r])
      picked = picked or f.chosen[r] or false
    end
    f.of[to], f.chosen[to] = set, picked
  end
end

-- Returns the number of a parameter of a PTX function, or nil. The function
-- writes the parameter's memory, and also loads it with ld.global.nc from an
-- address that depends on the result of a selp.
local function merged_parameter(ptx)
  local f = {of = {}, chosen = {}}
  local written, loads = {}, {}
  for line in ptx:gmatch "[^\n]+" do
    if line:find "^%.visible" or line:find "^%.entry" then
      f, written, loads = {of = {}, chosen = {}}, {}, {}
    end
    line = line:gsub("^%s*@!?%%p%d+", "")
    note_register(f, line)
    local op, at = line:match "^%s*(%l[%w.:_]*)[^%[]*%[(%%rd%d+)"
    if op and op:find "^ld%.global%.nc" and f.chosen[at] then
      loads[#loads + 1] = f.of[at]
    elseif op and (op:find "^st%.global" or op:find "^red%.global"
        or op:find "^atom%.global") then
      written = union(written, f.of[at])
    end
    for _, set in ipairs(line:find "^}" and loads or {}) do
      for name in pairs(set) do
        if written[name] then return math.tointeger(name:match "%d+$") + 1 end
      end
    end
  end
end

-- Finds an expression `p ? constant[i] : written[j]` that NVRTC wrongly
-- compiled to one ld.global.nc for both arrays.
local function merged_load(_, out)
  local n = merged_parameter(out.ptx or "")
  return n and ("it loads memory of parameter %d, which it writes, through the "
    .. "non-coherent cache, because NVRTC made one load of the two in "
    .. "`p ? a[i] : b[j]`\n  leave out __restrict__ or const"):format(n)
end

-- Finds atomic additions of f16x2 or bf16x2 to shared memory of a cluster.
local function cluster_sum(_, out)
  for op in (out.ptx or ""):gmatch "%f[%a][ar][te][%a]+%.[%w.:_]+" do
    if (op:find "^atom%." or op:find "^red%.") and op:find "f16x2"
        and op:find "shared::cluster" and op:find "%.add" then
      return ("ptxas makes %s an integer add that is not atomic\n  use two "
        .. "16-bit sums"):format(op)
    end
  end
end

-- Finds loops that count down to a negated limit, which ptxas unrolls.
local function loop_down(source)
  for before, rest in source:gmatch "([^\n]*\n[^\n]*)%f[%w_]for%s*(%b())" do
    local limit, step = rest:match "^%([^;]*;([^;]*);([^;]*)%)$"
    if limit and limit:find ">=?%s*%-%s*[%a_(]"
        and (step:find("--", 1, true) or step:find("-=", 1, true))
        and not before:find "#pragma%s+unroll%s*%(?1%f[%D]" then
      return ("ptxas may lose iterations of the loop `for %s`\n  write "
        .. "#pragma unroll 1 in front of it"):format(rest)
    end
  end
end

-- Finds loops of f64 MMAs for sm_90 that ptxas compiles at -O3.
local function f64_loop(_, out, opts)
  local ptx = out.ptx or ""
  if not (opts.arch or ""):find "^sm_90" or not ptx:find(
      "mma%.sync%.aligned%.[%w.]*f64") or not ptx:find "bra" then
    return nil
  end
  for _, o in ipairs(opts.options or {}) do
    if o:find "%-O[012]%f[%D]" then return nil end
  end
  return "at -O3, ptxas may read accumulators of an f64 MMA before they are "
    .. "written\n  compile with --ptxas-options=-O2"
end

-- Finds cp.async with a cache policy, from sm_90 on. If the shared address has
-- a uniform part, ptxas before 13.4 omits the registers of that part and of the
-- policy.
local function hinted_copy(_, out, opts)
  local sm = tonumber((opts.arch or ""):match "^sm_(%d+)")
  local version = tonumber(out.nvrtc)
  if not sm or sm < 90 or not version or version >= 13.4 then return nil end
  local op = (out.ptx or ""):match "cp%.async%.c[ag]%.[%w.:]*L2::cache_hint"
  return op and ("ptxas may make an illegal instruction of %s\n  leave out the "
    .. "cache hint, or compile with CUDA 13.4 or newer"):format(op)
end

local KNOWN = {merged_load, cluster_sum, loop_down, f64_loop, hinted_copy}

--- Returns a sentence for each known fault of the compiler that may affect a
-- kernel in CUDA C.
---@param source string
---@param out table result of jit.compile
---@param opts table options of jit.compile
---@return string[]
function faults.find(source, out, opts)
  local list = {}
  for _, look in ipairs(KNOWN) do list[#list + 1] = look(source, out, opts) end
  return list
end

return faults
-- SPDX-License-Identifier: MIT
