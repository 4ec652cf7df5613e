--- The environment of untrusted scripts of libcutelua. The library calls this
-- chunk before all others, with a table of C functions. The chunk limits Lua's
-- libraries to what the modules of cutelua need, and adds to the table the
-- function `globals`, which makes the globals of a script.
--
-- Neither a script nor cutelua itself can open files or start processes here:
-- the libraries io, os and package are not open, and core/library/sandbox.c
-- removes the functions of cute.core that reach the system.
local host = ...

-- Functions of Lua's libraries are kept here, so that a script that replaces
-- them does not affect this module.
local G = _G
local error, load, next = error, load, next
local rawget, rawset, setmetatable, type = rawget, rawset, setmetatable, type
local select, tostring = select, tostring
local raw_meta, set_raw_meta = debug.getmetatable, debug.setmetatable
local create, wrap, collect = coroutine.create, coroutine.wrap, collectgarbage
local pcall = pcall
local spend, loaded = host.spend, host.loaded

---------------------------------------------------------------------------
-- Modules
---------------------------------------------------------------------------

-- The public functions of cute.core that scripts may call: all functions that
-- compute and have no access to anything outside of the state. Review a new
-- function before you add it here.
local PUBLIC = {}
for name in ([[ArithmeticTuple E F2 ScaledBasis Swizzle abs acos acosh all_
    any_ append asin asinh atan atan2 atanh atom_name autovec_copy back
    basic_copy basic_copy_if basis_get basis_value blocked_product buffer
    buffer_from cbrt ceil ceil_div coalesce colex_geq colex_gtr colex_leq
    colex_less compact_col_major compact_order compact_row_major compatible
    complement composition congruent constexpr coprofile copy copy_atom_call
    copy_if copysign cos cos_approx cosh coshape cosize crd2crd crd2idx depth
    derivative dice div_full domain_distribute domain_offset downcast elem_geq
    elem_gtr elem_leq elem_less elem_scale empty eq erf erfc evenly_divides
    ex2_approx exp exp2 expm1 filter filter_zeros find flat_divide flat_product
    flatten flatten_to_tuple floor fma fmod from_bits front full full_like gcd
    ge gemm gemm_check gemm_reference get get_1d_coord get_divisibility
    get_flat_coord get_hier_coord get_leaves get_nonswizzle_portion get_swizzle
    get_swizzle_portion greatest_common_domain group group_modes gt
    has_underscore idx2crd increment increment_coord inner_partition
    inner_product insert is_congruent is_int_tuple is_integer is_major
    is_static is_weakly_congruent layout layout_add le leading_dim left_inverse
    lex_geq lex_gtr lex_leq lex_less lg2_approx local_partition local_tile log
    log10 log1p log2 logical_divide logical_product lt make_basis_like
    make_composed_layout make_copy_atom make_cotiled_copy make_fragment
    make_fragment_like make_identity_layout make_identity_tensor make_layout
    make_layout_image_mask make_layout_like make_layout_tv make_mma_atom
    make_ordered_layout make_rmem_tensor make_rmem_tensor_like make_smem_tensor
    make_swizzle make_tensor make_tiled_copy make_tiled_copy_A
    make_tiled_copy_B make_tiled_copy_C make_tiled_copy_C_atom
    make_tiled_copy_D make_tiled_copy_S make_tiled_copy_tv make_tiled_mma
    manual_seed max max_alignment max_common_layout max_common_vector min
    mma_atom_call ne nonfinite_ok nullspace on_device ones ones_like
    outer_partition parse partial_ok pow prepend product product_each
    product_like raked_product rand randint randn rank rcp rcp_approx recast
    recast_layout
    recast_tensor remove repeat_as_tuple repeat_like replace reverse
    right_inverse round round_up roundeven rsqrt rsqrt_approx select shape
    shape_div sin sin_approx sinh size slice slice_ slice_and_offset sqrt
    sqrt_approx stride sum take tan tanh tanh_approx tensor tile_to_shape
    tile_unzip tiled_divide tiled_product to_bits trunc tuple tuple_cat
    undefined_ok unflatten unwrap upcast weakly_compatible weakly_congruent
    where with_shape wrap zeros zeros_like zip zipped_divide
    zipped_product]]):gmatch "%S+" do
  PUBLIC[name] = true
end

local core = loaded["cute.core"]
for name, f in next, core do
  if type(f) == "function" and core.signature(f) and not PUBLIC[name] then
    core[name] = nil
  end
end

-- Untrusted scripts have no GPU and no compiler, so these modules are stubs.
local function no_gpu()
  return nil, "an untrusted script runs on the simulator only [no-gpu]"
end
loaded["cute.gpu"] = {open = no_gpu, count = function() return 0 end,
                      available = function() return false end}
loaded["cute.jit"] = {compile = no_gpu, version = no_gpu}

local require = host.require
G.require = require
G.package = {loaded = loaded}
G.dofile, G.loadfile = nil, nil

-- The methods of strings, such as ("x"):rep(3), that scripts may call.
local methods = {}
for name, f in next, G.string do
  if name ~= "dump" then methods[name] = f end
end
raw_meta("").__index = methods

local stream = host.stream
G.io = {stdout = stream(host.emit, 1), stderr = stream(host.emit, 2),
        type = function() end}
G.print = host.printer(host.emit)

---------------------------------------------------------------------------
-- Functions of scripts, with hooks in force
---------------------------------------------------------------------------

local function all(ok, ...)
  if not ok then error((...), 0) end
  return ...
end

-- A hook that ends a coroutine by an error leaves the coroutine without hooks.
-- Closing the coroutine then calls its __close metamethods, which no hook could
-- end. Therefore a pcall inside of the coroutine catches the error first, and
-- closes the variables.
local function body(f)
  if type(f) ~= "function" then return f end
  return function(...) return all(pcall(f, ...)) end
end

-- Making an error message calls __tostring, possibly while a hook runs. Lua
-- calls no other hook meanwhile, so no hook could end an endless __tostring.
-- Therefore __tostring runs in a coroutine, which has hooks of its own.
local function with_hooks(f)
  if type(f) ~= "function" then return f end
  return function(x) return wrap(body(f))(x) end
end

---------------------------------------------------------------------------
-- Metatables
---------------------------------------------------------------------------

-- Two fields of metatables are dangerous. Lua calls finalizers (__gc) without
-- hooks, so no hook could end an endless one. A chain of weak tables (__mode)
-- can make the collector take quadratic time. Therefore a script's metatable is
-- copied without these fields when it is set. Only the copy, which the script
-- cannot reach, takes effect. `copies` maps the original to the copy. Its
-- values are weak; no script can build a chain from them.
local copies = setmetatable({}, {__mode = "v"})
local ORIGINAL = {}

local function copy_meta(meta)
  local copy = rawget(copies, meta) or {}
  for key in next, copy do copy[key] = nil end
  for key, v in next, meta do
    if type(key) == "string" and key ~= "__gc" and key ~= "__mode" then
      copy[key] = key == "__tostring" and with_hooks(v) or v
    end
  end
  copy[ORIGINAL] = meta
  copies[meta] = copy
  return copy
end

local function safe_setmetatable(t, meta)
  if type(t) ~= "table" then
    error("bad argument #1 to 'setmetatable' (table expected)", 2)
  elseif meta ~= nil and type(meta) ~= "table" then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  end
  local old = raw_meta(t)
  if old and (not rawget(old, ORIGINAL) or rawget(old, "__metatable") ~= nil)
  then
    error("cannot change a protected metatable", 2)
  end
  if meta and (rawget(meta, "__gc") ~= nil or rawget(meta, "__mode") ~= nil)
  then
    error("__gc and __mode are not available to an untrusted script", 2)
  end
  set_raw_meta(t, meta and copy_meta(meta))
  return t
end

-- Works like getmetatable, but returns nil if no script has set the metatable.
local function safe_getmetatable(x)
  local meta = type(x) == "table" and raw_meta(x)
  local original = meta and rawget(meta, ORIGINAL)
  if not original then return nil end
  local shown = rawget(meta, "__metatable")
  if shown ~= nil then return shown end
  return original
end

-- The metatables of cutelua's classes are reachable as x.__index. They get
-- metatables that keep scripts from adding __gc and __mode.
local sealed = setmetatable({}, {__mode = "k"})

local function refuse(t, key, v)
  if key == "__gc" or key == "__mode" then
    error(key .. " is not available to an untrusted script", 2)
  end
  rawset(t, key, v)
end

G.setmetatable = function(t, meta)
  if meta and not sealed[meta] and not rawget(meta, "__mode") then
    sealed[meta] = true
    local above = raw_meta(meta)
    if not above then set_raw_meta(meta, {__newindex = refuse})
    elseif not rawget(above, "__newindex") then
      rawset(above, "__newindex", refuse)
    end
  end
  return setmetatable(t, meta)
end

local function safe_rawset(t, key, v)
  if key == "__gc" or key == "__mode" then
    error(key .. " is not available to an untrusted script", 2)
  end
  return rawset(t, key, v)
end

---------------------------------------------------------------------------
-- Functions of Lua's libraries whose time the budget must cover
---------------------------------------------------------------------------

local SAFE = {
  [""] = [[assert error ipairs next pairs pcall print rawequal rawget rawlen
    select tonumber tostring type _VERSION]],
  string = [[byte char find format gmatch gsub len lower match pack packsize rep
    reverse sub unpack upper]],
  table = "pack",
  math = [[abs acos asin atan ceil cos deg exp floor fmod huge log max
    maxinteger min mininteger modf pi rad random randomseed sin sqrt tan
    tointeger type ult]],
  utf8 = "char charpattern codepoint codes len offset",
  coroutine = "close isyieldable resume running status yield",
}

-- C functions of the table library run without hooks, and their time is
-- proportional to the lengths that they are given.
local insert, remove, move = table.insert, table.remove, table.move
local concat, unpack, sort = table.concat, table.unpack, table.sort

local function length(t) return type(t) == "table" and #t or 0 end

local function cost(from, to)
  if type(from) ~= "number" or type(to) ~= "number" or to < from then
    return 1
  end
  return to - from + 1
end

local function tables(out)
  function out.insert(t, ...)
    if select("#", ...) > 1 then spend(length(t)) end
    return insert(t, ...)
  end
  function out.remove(t, ...)
    if select("#", ...) > 0 then spend(length(t)) end
    return remove(t, ...)
  end
  function out.move(t, from, to, ...)
    spend(cost(from, to))
    return move(t, from, to, ...)
  end
  function out.concat(t, sep, from, to)
    spend(cost(from or 1, to or length(t)))
    return concat(t, sep, from or 1, to or length(t))
  end
  function out.unpack(t, from, to)
    spend(cost(from or 1, to or length(t)))
    return unpack(t, from or 1, to or length(t))
  end
  function out.sort(t, ...)
    spend(length(t) * 16)
    return sort(t, ...)
  end
  return out
end

-- Lua's xpcall calls the handler inside of the hook that raised the error. No
-- hook runs there, so none could end an endless handler. safe_xpcall calls the
-- handler after the error.
local pack = table.pack

local function safe_xpcall(f, handler, ...)
  local results = pack(pcall(f, ...))
  if results[1] then return unpack(results, 1, results.n) end
  return false, handler(results[2])
end

local function coroutines(out)
  -- The hook counts in each coroutine from 0, so it can miss short coroutines.
  function out.create(f)
    spend(200)
    return create(body(f))
  end
  function out.wrap(f)
    spend(200)
    return wrap(body(f))
  end
  return out
end

coroutines(G.coroutine)

---------------------------------------------------------------------------
-- The globals of a script
---------------------------------------------------------------------------

-- Reports whether a script may require a module. It may require those of
-- kernels/ and, with exceptions, the files directly in lua/cute.
local function is_public(name)
  if type(name) ~= "string" then return false end
  if name:find "^kernels%.[%w_.]+$" then return true end
  local part = name:match "^cute%.([%w_]+)$"
  return name == "cute" or part and part ~= "core" and part ~= "embedding"
    and part ~= "npy"
end

local function safe_require(name)
  if not is_public(name) then
    error(("module '%s' is not available to an untrusted script"):format(
      tostring(name)), 2)
  end
  return require(name)
end

local function pick(from, names)
  local out = {}
  for name in names:gmatch "%S+" do out[name] = from[name] end
  return out
end

local function safe_load(env)
  return function(text, name, _, ...)
    if type(text) == "function" then
      local parts, n = {}, 0
      while true do
        local part = text()
        if part == nil or part == "" then break end
        if type(part) ~= "string" then
          return nil, "reader function must return a string"
        end
        n = n + 1
        parts[n] = part
      end
      text = concat(parts)
    end
    name = type(name) == "string" and name:gsub("^[=@%[]+", "") or "load"
    local into = env
    if select("#", ...) > 0 then into = ... end
    spend(#tostring(text))
    return load(text, "=(" .. name:sub(1, 60) .. ")", "t", into)
  end
end

--- Makes the globals of a script.
---@return table
function host.globals()
  local env = pick(G, SAFE[""])
  for _, library in next, {"string", "math", "utf8"} do
    env[library] = pick(G[library], SAFE[library])
  end
  env.table = tables(pick(G.table, SAFE.table))
  env.coroutine = coroutines(pick(G.coroutine, SAFE.coroutine))
  env.setmetatable, env.getmetatable = safe_setmetatable, safe_getmetatable
  env.rawset, env.require = safe_rawset, safe_require
  env.xpcall = safe_xpcall
  env.load = safe_load(env)
  function env.collectgarbage(what)
    if what == "count" then return collect "count" end
    if what ~= nil and what ~= "collect" then
      error("collectgarbage: only 'collect' and 'count' are available to an "
        .. "untrusted script", 2)
    end
    spend(collect "count" // 1 * 16)
    return collect()
  end
  env._G = env
  return env
end

return host
-- SPDX-License-Identifier: MIT
