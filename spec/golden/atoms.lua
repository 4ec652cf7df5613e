--- Checks atoms and tiled operations against golden data (mma_atoms.jsonl,
-- copy_atoms.jsonl, tiled.jsonl). The checks are added to the table of
-- cute.golden.
local core = require "cute.core"
local golden = require "spec.golden"

-- One element type for each width in bits.
local BY_BITS = {[1] = core.b1, [4] = core.u4, [8] = core.u8, [16] = core.u16,
                 [32] = core.u32, [64] = core.u64, [128] = core.u128}

local function text_of(t)
  if type(t) ~= "table" then return tostring(t) end
  local parts = {}
  for i, x in ipairs(t) do parts[i] = text_of(x) end
  return "(" .. table.concat(parts, ",") .. ")"
end

-- Compares the fields of `got` with those of the golden result. (One row of the
-- data has a redundant pair of parentheses, "((16,8))", in its strides.)
local function same(got, want)
  for key, value in pairs(got) do
    local text, wanted = text_of(value), text_of(want[key])
    if text ~= wanted and
       text ~= wanted:gsub("%((%(%d+,%d+%))%)", "%1") then
      return false, ("%s = %s"):format(key, text_of(value))
    end
  end
  return true
end

local function equal(got, want)
  got = text_of(got)
  return got == want, got
end

-- ---- notation of arguments ----

-- Splits the text of a tuple, such as "(a,(b,c),d)", into its entries.
local function entries(text)
  local list, depth, from = {}, 0, 2
  for i = 1, #text do
    local c = text:sub(i, i)
    if c == "(" then depth = depth + 1 end
    if c == ")" then depth = depth - 1 end
    if (c == "," and depth == 1) or depth == 0 then
      list[#list + 1] = text:sub(from, i - 1)
      from = i + 1
      if depth == 0 then break end
    end
  end
  return list
end

-- Parses a tuple. An integer becomes a number, `_` becomes core._, and
-- other(entry) converts any other entry.
local function tuple(text, other)
  local t = {}
  for i, entry in ipairs(entries(text)) do
    t[i] = entry == "_" and core._ or math.tointeger(tonumber(entry)) or
           other(entry)
  end
  return t
end

local function shape(text) return tuple(text, shape) end

-- Parses a layout, or a text such as "SWIZZLED tiled to (128,64,3) mode-2
-- sliced at 0", where SWIZZLED is a layout.
local function tensor(text)
  local atom, to, rest = text:match "^(.*) tiled to (%b())(.*)$"
  if not atom then return core.layout(text) end
  local l = core.tile_to_shape(core.layout(atom), shape(to))
  if rest ~= "" then
    assert(rest == " mode-2 sliced at 0", rest)
    l = l(core._, core._, 0)
  end
  return l
end

local function mma(args, at)
  return core.make_tiled_mma(args[at], core.layout(args[at + 1]),
                             tuple(args[at + 2], core.layout))
end

local function partitioned(layout, offset, want)
  local got = {}
  for i = 1, #want.values do got[i] = offset + layout(i - 1) end
  for i, v in ipairs(want.values) do
    if got[i] ~= v then
      return false, ("%s at %s: %s"):format(layout, offset,
                                            table.concat(got, ","))
    end
  end
  return true
end

-- ---- tables ----

golden.ops.mma_atoms = {
  mma_traits = function(case)
    local a = core.make_mma_atom(case.args[1])
    return same({Shape_MNK = a.shape_mnk, ThrID = a.thr_id,
                 ALayout = a.tv_layout_A, BLayout = a.tv_layout_B,
                 CLayout = a.tv_layout_C, bits_DABC = a.value_bits}, case.out)
  end,
}

golden.ops.copy_atoms = {
  copy_traits = function(case)
    local a = core.make_copy_atom(case.args[1], core.b1)
    return same({ThrID = a.thr_id, SrcLayout = a.layout_src_tv,
                 DstLayout = a.layout_dst_tv, RefLayout = a.layout_ref_tv},
                case.out)
  end,
  copy_atom = function(case)
    local a = core.make_copy_atom(case.args[1], BY_BITS[case.args[2]])
    return same({ThrID = a.thr_id, ValLayoutSrc = a.layout_src_tv,
                 ValLayoutDst = a.layout_dst_tv,
                 ValLayoutRef = a.layout_ref_tv,
                 NumValSrc = core.size(a.layout_src_tv, 1),
                 NumValDst = core.size(a.layout_dst_tv, 1)}, case.out)
  end,
}

-- ---- tiled ----

local tiled = {
  tiled_mma = function(case)
    local m = mma(case.args, 1)
    return same({thr_layout_vmnk = m.thr_layout_vmnk, size = m:size(),
                 tile_shape = m.tile_size_mnk,
                 layoutA_TV = m.tv_layout_A_tiled,
                 layoutB_TV = m.tv_layout_B_tiled,
                 layoutC_TV = m.tv_layout_C_tiled}, case.out)
  end,
  tile_to_shape = function(case)
    local l = core.tile_to_shape(core.layout(case.args[1]),
                                 shape(case.args[2]))
    return equal(l, case.out)
  end,
}
golden.ops.tiled = tiled

for x in ("ABC"):gmatch "." do
  tiled["thrfrg_" .. x] = function(case)
    local m = mma(case.args, 1)
    return equal(m["thrfrg_" .. x](m, tensor(case.args[4])), case.out)
  end
  tiled["partition_shape_" .. x] = function(case)
    local m = mma(case.args, 1)
    return equal(m["partition_shape_" .. x](m, shape(case.args[4])), case.out)
  end
  tiled["partition_" .. x] = function(case)
    local thr = mma(case.args, 1):get_slice(case.args[5])
    local l, off = thr["partition_" .. x](thr, tensor(case.args[4]))
    return partitioned(l, off, case.out)
  end
  tiled["partition_fragment_" .. x] = function(case)
    local thr = mma(case.args, 1):get_slice(case.args[5] or 0)
    return equal(thr["partition_fragment_" .. x](thr, tensor(case.args[4])),
                 case.out)
  end
end

local function copy_fields(c)
  return {Tiler_MN = c.tiler_mn, size = c:size(),
          TiledLayout_TV = c.layout_tv_tiled,
          layoutS_TV = c.layout_src_tv_tiled,
          layoutD_TV = c.layout_dst_tv_tiled}
end

local function copy_atom(args)
  return core.make_copy_atom(args[1], BY_BITS[args[2]])
end

local function plain_copy(args)
  return core.make_tiled_copy(copy_atom(args), core.layout(args[3]),
                              core.layout(args[4]))
end

function tiled.tiled_copy(case)
  return same(copy_fields(plain_copy(case.args)), case.out)
end

for side in ("SD"):gmatch "." do
  tiled["copy_partition_" .. side] = function(case)
    local thr = plain_copy(case.args):get_slice(case.args[6])
    local l, off = thr["partition_" .. side](thr, tensor(case.args[5]))
    return partitioned(l, off, case.out)
  end
end

-- Reports whether `thread` is beyond the threads of the copy, so that get_slice
-- raises an error. The data has results for such threads too, because CuTe
-- evaluates its layouts for them.
local function is_beyond(copy, thread)
  return thread >= copy:size() and not pcall(copy.get_slice, copy, thread)
end

for x in ("ABC"):gmatch "." do
  local function make(args)
    local m = mma(args, 3)
    return core["make_tiled_copy_" .. x](copy_atom(args), m), m
  end
  tiled["tiled_copy_" .. x] = function(case)
    return same(copy_fields((make(case.args))), case.out)
  end
  for side in ("SD"):gmatch "." do
    local name = ("tiled_copy_%s_"):format(x)
    tiled[name .. "partition_" .. side] = function(case)
      local copy = make(case.args)
      if is_beyond(copy, case.args[7]) then return true end
      local thr = copy:get_slice(case.args[7])
      local l, off = thr["partition_" .. side](thr, tensor(case.args[6]))
      return partitioned(l, off, case.out)
    end
    tiled[name .. "retile_" .. side] = function(case)
      local c, m = make(case.args)
      local frg = m["partition_fragment_" .. x](m, tensor(case.args[6]))
      return equal(c["retile_" .. side](c, frg), case.out)
    end
  end
end

-- ---- calls that CuTe rejects ----

-- Wraps a check of a call that CuTe rejects. The check passes if our call
-- raises an error. A result passes only if CuTe rejects the call for lack of an
-- overload ("no_compile").
local function refused(check)
  return function(case)
    local ok, message = pcall(check, case)
    if not ok then
      return not tostring(message):find("[internal]", 1, true), message
    end
    return case.how == "no_compile", "accepted"
  end
end

local bad = golden.ops.inadmissible or {}
golden.ops.inadmissible = bad
bad.copy_atom = refused(function(case) return copy_atom(case.args) end)
for op, check in pairs(tiled) do
  if op ~= "tile_to_shape" then
    bad[op] = refused(function(case)
      case.out = {values = {}}
      return check(case)
    end)
  end
end

return golden
-- SPDX-License-Identifier: MIT
