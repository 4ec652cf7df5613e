--- Finds the layout of a shared tensor with which its accesses need the fewest
-- passes (shared-memory wavefronts). It tries swizzles and paddings on all
-- accesses that a kernel makes to the tensor.
--
--     print(k(A, B):find_swizzle {grid = 8, block = 256})
--     cute.find_swizzle(cute.make_layout({32, 32}, {32, 1}), {
--       {op = "st", type = cute.f32, at = function(t, i) return {i, t} end,
--        count = 32},
--       {op = "ld", type = cute.f32, at = function(t, i) return {t, i} end,
--        count = 32}})
--
-- An access records the positions in the tensor that the lanes of a warp touch
-- together. Its cost under another layout is computed by the same code that
-- counts passes while a kernel runs (core/hardware/access.c). Vectors stay
-- intact: swizzles move chunks, and paddings have sizes, that are at least as
-- wide as the widest access.
--
-- A result has: tensor, layout (a cute.Layout), lua (the layout's source text),
-- was = {passes =, conflicts =}, now = {passes =, conflicts =}, bytes = {was =,
-- now =} (of shared memory), lines = {{file =, line =, op =, was =, now =
-- conflicts}, ...}, cured (true if no conflict is left). tostring prints it.
local core = require "cute.core"
local conflict = require "cutelua.profile.conflict"
local sign = require "cute.lang.signature"
local smem = require "cute.smem"
local source = require "cute.lang.source"

local swizzle = {}

-- Total width of all banks, in bits.
local LINE = 1024
local NONE = {0, 4, 3}

local Found = {__closed = true}  -- traces do not record its fields
Found.__index = Found

local function log2(n)
  local k = 0
  while 1 << k < n do k = k + 1 end
  return k
end

---------------------------------------------------------------------------
-- Layouts in Lua
---------------------------------------------------------------------------

local function tuple_text(t)
  if type(t) ~= "table" then return tostring(t) end
  local parts = {}
  for i = 1, #t do parts[i] = tuple_text(t[i]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function plain_text(l)
  return ("cute.make_layout(%s, %s)"):format(tuple_text(l.shape),
                                             tuple_text(l.stride))
end

local function swizzled(sw, plain)
  return core.composition(core.make_swizzle(table.unpack(sw)), plain)
end

local function swizzled_text(sw, plain)
  return ("cute.composition(cute.make_swizzle(%d, %d, %d), %s)"):format(sw[1],
    sw[2], sw[3], plain_text(plain))
end

-- Returns the numbers {B, M, S} of a layout's swizzle; nil if it has none.
local function bits_of(l)
  local sw = l.swizzle
  return sw and {sw.num_bits, sw.num_base, sw.num_shift}
end

---------------------------------------------------------------------------
-- Candidates
---------------------------------------------------------------------------

-- Returns the flat modes of a layout without swizzle as {extent, stride}, the
-- smallest stride first. Modes with one element are left out.
local function modes_of(plain)
  local shape, stride = core.flatten(plain.shape), core.flatten(plain.stride)
  if type(shape) ~= "table" then shape, stride = {shape}, {stride} end
  local modes = {}
  for i = 1, #shape do
    if shape[i] > 1 and stride[i] > 0 then
      modes[#modes + 1] = {shape[i], stride[i]}
    end
  end
  table.sort(modes, function(a, b) return a[2] < b[2] end)
  return modes
end

-- Returns the strides at which padding may be inserted in a layout. All larger
-- strides are multiples of such a stride, and modes with smaller strides do not
-- reach as far.
local function boundaries(plain)
  local list, reach = {}, 1
  local modes = modes_of(plain)
  for i, m in ipairs(modes) do
    local whole = m[2] >= reach and m[2] > 1
    for k = i, #modes do whole = whole and modes[k][2] % m[2] == 0 end
    if whole then list[#list + 1] = m[2] end
    reach = reach + (m[1] - 1) * m[2]
  end
  return list
end

-- Returns the layout `plain` with each stride replaced by f(stride).
local function restrided(plain, f)
  local function each(d)
    if type(d) ~= "table" then return f(d) end
    local out = {}
    for i = 1, #d do out[i] = each(d[i]) end
    return out
  end
  return core.make_layout(plain.shape, each(plain.stride))
end

-- Returns the layout `plain` with `pad` elements of padding after each `run`
-- elements.
local function padded(plain, run, pad)
  return restrided(plain, function(d)
    return d >= run and d + d // run * pad or d
  end)
end

-- Returns the layout `plain` without gaps between its elements, and with its
-- modes in the same order. Returns nil if it has no gaps.
local function packed(plain)
  local to, n = {}, 1
  for _, m in ipairs(modes_of(plain)) do
    if to[m[2]] then return nil end
    to[m[2]], n = n, n * m[1]
  end
  return n < core.cosize(plain) and restrided(plain, function(d)
    return to[d] or d
  end) or nil
end

-- Returns the swizzles {B, M, S} to try. They move chunks of at least `unit`
-- elements within one row of all banks. Also returns all B, M and S as one flat
-- list.
local function swizzles(unit, bits, cosize)
  local list, flat = {}, {}
  local line, top = log2(LINE // bits), log2(cosize)
  for m = log2(unit), line - 1 do
    for b = 1, line - m do
      for s = b, top - m - 1 do
        list[#list + 1] = {b, m, s}
        table.move({b, m, s}, 1, 3, #flat + 1, flat)
      end
    end
  end
  return list, flat
end

-- Returns the canonical layouts for wgmma and TMA that have the shape and the
-- major mode of an operand.
local function canonical(o, plain)
  local list, bits = {}, o.dtype.bits
  local shape = {core.size(plain, 0), core.size(plain, 1)}
  for i = 3, core.rank(plain) do shape[i] = core.size(plain, i - 1) end
  local first = core.flatten(plain.stride)
  local major = (type(first) == "table" and first[1] or first) == 1 and "MN"
    or "K"
  local span = shape[major == "K" and 2 or 1] * bits
  for _, kind in ipairs {"SW128", "SW64", "SW32", "INTER"} do
    local atom = smem.atom(major, kind, bits)
    if core.rank(plain) > 1 and span % (core.size(atom, major == "K" and 1
        or 0) * bits) == 0 and shape[major == "K" and 1 or 2]
        % core.size(atom, major == "K" and 0 or 1) == 0 then
      local l = core.tile_to_shape(atom, shape)
      list[#list + 1] = {layout = l, plain = l.outer, swizzle = bits_of(l),
        lua = ("cute.tile_to_shape(cute.nvgpu.warpgroup.make_smem_layout_atom("
          .. "\"%s_%s\", cute.%s), %s)"):format(major, kind, o.dtype.name,
          tuple_text(shape))}
    end
  end
  return list
end

---------------------------------------------------------------------------
-- The search
---------------------------------------------------------------------------

local function sum(by)
  local n = 0
  for _, x in pairs(by) do n = n + x end
  return n
end

local function size_of(o, elements)
  return (elements * o.dtype.bits + 7) // 8
end

-- Returns how many elements of shared memory a candidate layout needs.
local function extent(c)
  local n = core.cosize(c.plain)
  local sw = c.swizzle
  local block = sw and 1 << (sw[1] + sw[2]) or 1
  return (n + block - 1) // block * block
end

-- Reports whether candidate a is better than b. The first difference decides:
-- fewer passes, then fewer bytes, then fewer bits in the swizzle (for canonical
-- layouts, more bits).
local function better(a, b)
  if a.passes ~= b.passes then return a.passes < b.passes end
  if a.bytes ~= b.bytes then return a.bytes < b.bytes end
  local most = a.lua and -1 or 1
  return most * (a.swizzle and a.swizzle[1] or 0)
    < most * (b.swizzle and b.swizzle[1] or 0)
end

-- Returns the best layout for the accesses to object o, and the current layout.
-- These are the same unless a layout with fewer passes is found. budget: bytes
-- of shared memory that o may take.
local function search(requests, o, was, budget)
  local bits, index = o.dtype.bits, o.index
  local plain = was.is_composed and was.outer or was
  local unit = math.max(requests:width(index) * 8 // bits, 1)
  local best = {layout = was, plain = plain, bytes = o.bytes,
                swizzle = bits_of(was)}
  best.passes = requests:search(index, was, plain, bits,
                                best.swizzle or NONE)[1]
  local first = best
  local function try(c, passes)
    c.passes, c.bytes = passes, size_of(o, extent(c))
    if passes and passes < first.passes and c.bytes <= budget
        and (best == first or better(c, best)) then
      best = c
    end
  end
  if not best.passes then return nil end
  if o.agent == "bulk" then return best, first end
  if o.agent then
    for _, c in ipairs(canonical(o, plain)) do
      try(c, requests:search(index, was, c.plain, bits,
                              c.swizzle or NONE)[1])
    end
    return best, first
  end
  for _, p in ipairs {plain, packed(plain)} do
    local list, flat = swizzles(unit, bits, core.cosize(p))
    local costs = requests:search(index, was, p, bits, flat)
    for i, sw in ipairs(list) do try({plain = p, swizzle = sw}, costs[i]) end
    try({plain = p}, requests:search(index, was, p, bits, NONE)[1])
  end
  for _, run in ipairs(boundaries(plain)) do
    for pad = unit, LINE // bits - 1, unit do
      local p = padded(plain, run, pad)
      try({plain = p}, requests:search(index, was, p, bits, NONE)[1])
    end
  end
  return best, first
end

-- Simplifies the modes of a candidate's layout, and sets its fields `layout`
-- and `lua`, the source text.
local function of_candidate(c)
  local sw, each = c.swizzle, {}
  for i = 1, core.rank(c.plain) do each[i] = 1 end
  c.plain = core.coalesce(c.plain, each)
  c.layout = c.layout or sw and swizzled(sw, c.plain) or c.plain
  c.lua = c.lua or sw and swizzled_text(sw, c.plain) or plain_text(c.plain)
  return c
end

-- Returns the total passes and the total conflicts of the accesses to object o
-- under candidate layout c, and the conflicts by line.
local function by_line(requests, o, was, c, lines)
  local sw = c.swizzle and core.make_swizzle(table.unpack(c.swizzle))
  local passes, conflicts = requests:cost(o.index, was, c.plain, o.dtype.bits,
                                          sw)
  local out = {}
  for i, n in pairs(conflicts) do
    local s = lines[i]
    out[i] = {file = s.file, line = s.line, op = s.op, n = n}
  end
  return sum(passes), sum(conflicts), out
end

-- Returns the result for object o, whose accesses were recorded. lines: the
-- source lines of the accesses.
local function find(requests, o, lines, budget)
  local ok, was = pcall(core.layout, o.text)
  local sw = ok and was.swizzle
  local why
  if o.text == "" then
    why = "the kernel addresses its bytes, without a layout"
  elseif not ok or was.is_composed and not sw then
    why = "its coordinates come from a function"
  elseif o.several then
    why = "it is accessed through layouts with different swizzles"
  end
  local best, first
  if not why then best, first = search(requests, o, was, budget) end
  if not why and not best then
    why = "some accesses bypass its layout"
  end
  local found = setmetatable({tensor = o.tensor, index = o.index,
    dtype = o.dtype, why = why, file = o.file, line = o.line, text = o.text,
    agent = o.agent, lines = {}}, Found)
  if why then return found end
  of_candidate(best)
  local p0, c0, l0 = by_line(requests, o, was, first, lines)
  local p1, c1, l1 = by_line(requests, o, was, best, lines)
  found.was, found.now = {passes = p0, conflicts = c0},
                         {passes = p1, conflicts = c1}
  found.layout, found.lua, found.cured = best.layout, best.lua, c1 == 0
  found.bytes, found.kept = {was = o.bytes, now = best.bytes}, best == first
  for i = 1, #lines do
    if l0[i] then
      l0[i].was, l0[i].now, l0[i].n = l0[i].n, l1[i] and l1[i].n or 0, nil
      found.lines[#found.lines + 1] = l0[i]
    end
  end
  return found
end

local function head_text(f)
  local at = f.line and ("%s:%d: "):format(source.short(f.file or "?"), f.line)
    or ""
  return ("%s%s, %s%s"):format(at, f.tensor, f.dtype.name,
    f.text == "" and "" or " " .. f.text)
end

local AGENTS = {wgmma = "warpgroup MMAs read it", tma = "TMA copies it",
                bulk = "bulk copies need its layout unchanged"}

function Found.__tostring(f)
  local out = {}
  local function add(...) out[#out + 1] = string.format(...) end
  if f.why then
    add("%s: not searched: %s", head_text(f), f.why)
  elseif f.was.conflicts == 0 then
    add("%s: no conflicts in %d passes", head_text(f), f.was.passes)
  elseif f.kept then
    add("%s: %d conflicts in %d passes, and no candidate has fewer",
        head_text(f), f.was.conflicts, f.was.passes)
  else
    add("%s: %d conflicts become %d", head_text(f), f.was.conflicts,
        f.now.conflicts)
    add("  %s", f.lua)
    if f.bytes.now ~= f.bytes.was then
      add("  %d bytes instead of %d", f.bytes.now, f.bytes.was)
    end
  end
  if f.agent and f.was and f.was.conflicts > 0 then
    add("  %s: %s", AGENTS[f.agent], f.agent == "bulk" and "it stays"
      or "only the canonical layouts were tried")
  end
  for _, s in ipairs(f.lines) do
    if s.was > 0 or s.now > 0 then
      add("  %s%s: %d conflicts, then %d", s.file
        and ("%s:%d "):format(source.short(s.file), s.line) or "", s.op, s.was,
        s.now)
    end
  end
  return core.visible(table.concat(out, "\n"), true)
end

---------------------------------------------------------------------------
-- Accesses of a report
---------------------------------------------------------------------------

local List = {}
List.__index = List

function List.__tostring(list)
  local out = {}
  for i, f in ipairs(list) do out[i] = tostring(f) end
  if #out == 0 then return "no shared tensor has conflicts" end
  if list.lost > 0 then
    out[#out + 1] = ("%d further requests were not examined: too many of them "
      .. "differ"):format(list.lost)
  end
  return table.concat(out, "\n")
end

--- Returns the results for a report with recorded accesses. They are about all
-- shared tensors with conflicts, or only about the tensor called `name`.
---@param report table
---@param name? string
---@return table[]
function swizzle.of_report(report, name)
  local fn, sm = report.program.fn, report.sm
  local objects, names, hit = conflict.objects(fn), {}, {}
  for _, s in ipairs(report.lines) do
    if s.mem and s.conflicts > 0 then hit[s.mem] = true end
  end
  local room = core.smem_budget(sm) - report.program.info.smem
  local list = setmetatable({lost = report.requests:lost()}, List)
  local order = {}
  for index, o in pairs(objects) do
    names[#names + 1], order[#order + 1] = o.tensor, index
  end
  table.sort(order)
  for _, index in ipairs(order) do
    local o = objects[index]
    if name == o.tensor or not name and hit[index] then
      list[#list + 1] = find(report.requests, o, report.lines, o.bytes + room)
    end
  end
  if name and #list == 0 then
    table.sort(names)
    core.fail("unknown-name", ("no shared tensor '%s': there %s %s"):format(
      name, #names == 1 and "is" or "are", #names > 0
      and table.concat(names, " ") or "none"))
  end
  return list
end

--- Runs a call of a kernel, k(A, B), on a simulator. Returns the results for
-- its shared tensors.
---@param call table
---@param opts? table options of call:profile, and tensor: the name of one
-- tensor
---@return table[]
function swizzle.of_call(call, opts)
  local own, name = opts, nil
  if type(opts) == "table" then
    own, name = {}, opts.tensor
    for k, v in pairs(opts) do own[k] = v end
    own.tensor = nil
  end
  return swizzle.of_report(call:profile(own), name)
end

---------------------------------------------------------------------------
-- Described accesses
---------------------------------------------------------------------------

-- For each operation of a described access: the kind of access, and the bytes
-- per lane if their number is fixed.
local OPS = {ld = {"load"}, st = {"store"}, ["cp.async"] = {"cp.async"},
             ["cp.async.cg"] = {"cp.async.cg", 16},
             ldmatrix = {"matrix", 16}, stmatrix = {"matrix", 16}}

local WARP = 32

-- Returns the number of values that a thread has in a copy atom's source (side
-- "S") or destination (side "D").
local function values(copy, side)
  return core.size(side == "S" and copy.layout_src_tv or copy.layout_dst_tv, 1)
end

-- Returns the description of the access by which a tiled copy reads its source
-- (a.side is "S") or writes its destination ("D"). `layout` is the layout of
-- the source or destination.
local function of_copy(i, a, layout)
  local copy, side = a.copy, a.side
  if core.typename(copy) ~= "tiled" or side ~= "S" and side ~= "D" then
    core.fail("bad-argument", ("find_swizzle: access %d needs copy = a tiled "
      .. "copy, side = \"S\" or \"D\""):format(i))
  end
  local name, bits = copy.name, copy.value_type.bits
  local op = name:find "LDSM" and "ldmatrix" or name:find "STSM" and "stmatrix"
    or name:find "CACHEGLOBAL" and "cp.async.cg"
    or name:find "CP_ASYNC" and "cp.async" or side == "S" and "ld" or "st"
  local n, lanes = values(copy, side), WARP
  -- ldmatrix and stmatrix take one row address from each lane below `lanes`.
  if OPS[op][1] == "matrix" then
    lanes = values(copy, side == "S" and "D" or "S") * bits // 32 * 8
  end
  local all, parts = core.make_identity_tensor(layout.shape), {}
  for t = 0, copy:size() - 1 do
    local thr = copy:get_slice(t)
    parts[t] = side == "S" and thr:partition_S(all) or thr:partition_D(all)
  end
  return {op = op, width = n * bits // 8, threads = copy:size(),
          count = core.size(parts[0]) // n, at = function(t, step)
            return t % WARP < lanes and parts[t][step * n] or nil
          end}
end

local function check_access(i, a)
  local op = type(a) == "table" and OPS[a.op]
  if not op then
    local names = {}
    for n in pairs(OPS) do names[#names + 1] = n end
    table.sort(names)
    core.fail("bad-argument", ("find_swizzle: access %d must be a table with "
      .. "op = one of %s, not %s"):format(i, table.concat(names, " "),
      core.show(type(a) == "table" and a.op or a)))
  end
  if type(a.at) ~= "function" then
    core.fail("bad-argument", ("find_swizzle: access %d needs at = a function "
      .. "of the thread and the step that returns a coordinate or nil")
      :format(i))
  end
  local width = a.width or op[2]
  for _, name in ipairs {"threads", "count", "width"} do
    local n = a[name] or 1
    if math.type(n) ~= "integer" or n < 1 then
      core.fail("bad-argument", ("find_swizzle: access %d has %s = %s; an "
        .. "integer of 1 or more is needed"):format(i, name, tostring(n)))
    end
  end
  return op[1], width
end

-- Records access i: for each warp and step, the byte that each thread accesses.
-- Returns a name for the access.
local function note(requests, i, a, plain, dtype)
  if type(a) == "table" then
    core.check_options(a, "at copy count op side threads width")
  end
  if type(a) == "table" and a.copy then a = of_copy(i, a, plain) end
  local kind, width = check_access(i, a)
  width = width or math.max(dtype.bits // 8, 1)
  if width & (width - 1) ~= 0 or width > 16 then
    core.fail("bad-argument", ("find_swizzle: access %d has %d bytes; 1, 2, 4, "
      .. "8 or 16 are needed"):format(i, width))
  end
  for step = 0, (a.count or 1) - 1 do
    for warp = 0, (a.threads or WARP) - 1, WARP do
      local lanes = {}
      for l = 0, WARP - 1 do
        local c = warp + l < (a.threads or WARP) and a.at(warp + l, step)
        lanes[l + 1] = c and plain(c) * dtype.bits // 8 or false
      end
      requests:add {kind = kind, width = width, line = i, lanes = lanes}
    end
  end
  return ("access %d, %s"):format(i, a.op)
end

--- Finds the layout of one shared tensor with which the given accesses need the
-- fewest passes (shared-memory wavefronts). Each access is a table with these
-- fields:
--   op       "ld", "st", "cp.async", "cp.async.cg", "ldmatrix" or "stmatrix"
--   at       function(thread, step) -> the coordinate of the first element that
--            the thread accesses, or nil
--   width    bytes per thread: when absent, one element; 16 for the last three
--   threads  number of threads (32 when absent)
--   count    number of steps (1 when absent)
-- or it is {copy = a tiled copy, side = "S" or "D"}: the tensor is the source
-- or the destination of the copy.
---@param layout cute.Layout static; the current layout, with its swizzle
---@param accesses table[]
---@param opts? {type: cute.DType?, name: string?, budget: integer?} type:
-- element type (bf16 when absent); budget: bytes of shared memory (an SM's when
-- absent)
---@return table found
function swizzle.find_swizzle(layout, accesses, opts)
  opts = opts or {}
  local dtype = opts.type or core.bf16
  if type(dtype) == "string" then dtype = core.find_dtype(dtype) end
  local requests, lines = core.requests(), {}
  for i, a in ipairs(accesses) do
    lines[i] = {op = note(requests, i, a, layout, dtype)}
  end
  if #requests == 0 then
    core.fail("bad-argument", "find_swizzle: the list of accesses is empty")
  end
  local o = {index = 1, dtype = dtype, text = tostring(layout),
             tensor = opts.name or "the tensor"}
  o.bytes = size_of(o, extent {plain = layout.outer, swizzle = bits_of(layout)})
  return find(requests, o, lines, opts.budget or core.smem_budget(0))
end

sign.strict("found swizzle", Found, "why was now layout lua cured bytes kept "
  .. "file line agent")

return swizzle
-- SPDX-License-Identifier: MIT
