-- What every public function says of a call that cannot be right: its own
-- name as users write it, the argument, the value, a kind; nothing of Lua's
-- or of the inside. The functions are found by walking the modules and the
-- types, so that a new one is covered without an edit.
local cute = require "cute"
local core = require "cute.core"

local kinds = core.error_kinds

-- Functions that take any number of arguments, and why. The parameter is that
-- of their signature.
local FREE = {
  ["modes..."] = "modes to go down to, or modes of a basis",
  ["values..."] = "a list of operands, of a coordinate, or to print",
  ["tuples..."] = "a list of tuples",
  ["tuple..."] = "a tuple, or its entries",
  ["shape..."] = "a shape, or its extents",
  ["layouts..."] = "layouts side by side",
  ["yz..."] = "thread_idx() gives three values, of which x counts",
}

---------------------------------------------------------------------------
-- The public surface
---------------------------------------------------------------------------

-- {name =, f =, signature =} of all that a table holds.
local function functions_of(t, list, seen)
  local names = {}
  for k, v in pairs(t) do
    if type(k) == "string" and type(v) == "function"
      and not k:find "^__" then names[#names + 1] = k end
  end
  table.sort(names)
  for _, k in ipairs(names) do
    local f = rawget(t, k)
    local signature = core.signature(f)
    if not seen[f] and debug.getinfo(f, "S").what == "C" then
      seen[f] = true
      list[#list + 1] = {key = k, f = f, signature = signature,
        name = signature and signature:match "^[^(]+"}
    end
  end
  return list
end

local MODULES = {}

-- Types whose methods only lua/cute calls.
local PRIMITIVE = {["cute.fn"] = true}

local function surface()
  local list, seen = {}, {}
  for _, name in ipairs(MODULES) do functions_of(cute[name], list, seen) end
  for _, names in ipairs(getmetatable(cute).lazy) do
    for name in pairs(names) do local _ = cute[name] end
  end
  functions_of(cute, list, seen)
  for name, mt in pairs(debug.getregistry()) do
    if type(name) == "string" and name:find "^cute%." and type(mt) == "table"
      and rawget(mt, "__name") == name and not PRIMITIVE[name] then
      functions_of(mt, list, seen)
    end
  end
  return list
end

---------------------------------------------------------------------------
-- What a message has to be
---------------------------------------------------------------------------

local RAW = {"attempt to ", "'%?'", "%.c:", "%(local '", "%(field '",
  "%(upvalue '", "core%.", "'for' ", "stack overflow",
  "not enough memory", "INTERNAL", "%[internal%]", "please report",
  "lua/cute/", "invalid option", "malformed"}

-- Does a message tell a value: as it was written, as it prints, or what it is?
local function mentions(message, v)
  local words = {core.show(v), tostring(v), core.typename(v)}
  if type(v) == "table" then
    if next(v) == nil then words[4], words[5] = "()", "empty" end
    for _, x in ipairs(v) do
      if mentions(message, x) then return true end
    end
  elseif math.type(v) == "integer" then
    words[4] = ("%x"):format(v)
  end
  for _, word in ipairs(words) do
    if message:find(word, 1, true) then return true end
  end
  return false
end

-- What is wrong with a message about name(args...), or nil.
local function complaint(message, name, args)
  if type(message) ~= "string" then return "is no text" end
  local first = message:match "^[^\n]*"
  local where, said, kind = first:match "^(.-:%d+: )(.*) %[([%l-]+)%]$"
  if not where then return "has no place or kind" end
  if not kinds[kind] then return "has no known kind" end
  if not where:find "words_spec" then return "does not tell the caller" end
  for _, pattern in ipairs(RAW) do
    if message:find(pattern) then return "holds " .. pattern end
  end
  local base = name:match "[%w_]+$"
  if not (said:find(name, 1, true) or said:find(":" .. base, 1, true)) then
    return "does not name " .. name
  end
  if said:find "#%d" or said:find "expected, got" or said:find "called on" then
    return
  end
  if kind == "not-tracing" or kind == "inside-kernel" then return end
  for i = 1, args.n do
    if mentions(message, args[i]) then return end
  end
  if args.n == 0 then return end
  return "tells neither argument nor value"
end

local function count(signature)
  local n, least, free = 0, 0, nil
  for p in signature:match "%((.*)%)":gmatch "[^,]+" do
    p = p:match "^%s*(.-)%s*$"
    if p:find "%.%.%.$" then
      free = p:match "^[^:]+"
    else
      n = n + 1
      if not p:find "?" then least = n end
    end
  end
  return n, least, free
end

local function samples()
  local L = cute.layout "(4,2):(1,4)"
  local list = {true, false, "x", {}, {"x"}, {n = 1}, print, 0 / 0, 1 << 62,
    -1, 1.5, 0, L, cute._, cute.LayoutLeft, cute.E(0),
    cute.make_swizzle(1, 0, 1), cute.f32, cute.zeros({4, 2}, cute.f32),
    cute.zeros({4, 2}, cute.f32).iterator, cute.buffer("f32", 8), io.stdout,
    cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN",
    cute.make_copy_atom("UniversalCopy", cute.f32),
    cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN",
    cute.kernel("k", function() end)}
  list[#list + 1] = list[#list]()
  return list
end

-- Calls of one function: lists of arguments.
local function calls(f)
  local most, _, free = count(f.signature)
  local list = {{n = 0}, {n = 1}}
  for _, v in ipairs(samples()) do
    list[#list + 1] = {v, n = 1}
    list[#list + 1] = {v, v, n = 2}
    list[#list + 1] = {nil, v, n = 2}
    list[#list + 1] = {v, v, v, v, n = 4}
  end
  if not free then
    local args = {n = most + 1 + (f.name:find ":" and 1 or 0)}
    for i = 1, args.n do args[i] = 7 end
    list[#list + 1] = args
  end
  return list
end

local function quiet(f, ...)
  local out = io.output()
  local null <close> = assert(io.open("/dev/null", "w"))
  io.output(null)
  local print_ = print
  print = function() end  -- luacheck: ignore
  local r = table.pack(pcall(f, ...))
  print = print_  -- luacheck: ignore
  io.output(out)
  return table.unpack(r, 1, r.n)
end

local function text(f, args)
  local list = {}
  for i = 1, args.n do list[i] = core.show(args[i]) end
  return ("%s(%s)"):format(f.name, table.concat(list, ", "))
end

local function check(f, bad)
  for _, args in ipairs(calls(f)) do
    local ok, message = quiet(f.f, table.unpack(args, 1, args.n))
    local most, least, free = count(f.signature)
    if f.name:find ":" then most, least = most + 1, least + 1 end
    local why
    if not ok then
      why = complaint(message, f.name, args)
    elseif args.n < least or not free and args.n > most then
      why = "raised nothing"
    end
    if why then
      bad[#bad + 1] = ("%s: %s: %s"):format(text(f, args), why,
        tostring(message))
    end
  end
end

---------------------------------------------------------------------------

describe("every public function", function()
  local public = surface()

  it("has a signature, and a reason where it takes any number", function()
    for _, f in ipairs(public) do
      assert.truthy(f.signature, f.key .. " has none")
      local _, _, free = count(f.signature)
      assert.truthy(not free or FREE[free], f.signature)
    end
  end)

  for _, f in ipairs(public) do
    if f.signature then
      it("says what is wrong: " .. f.signature, function()
        local bad = {}
        check(f, bad)
        assert.equal(0, #bad, table.concat(bad, "\n", 1, math.min(#bad, 4)))
      end)
      it("in a kernel too: " .. f.signature, function()
        local bad = {}
        pcall(function()
          cute.kernel("k", function() check(f, bad) end)()
            :trace {block = 32}
        end)
        assert.equal(0, #bad, table.concat(bad, "\n", 1, math.min(#bad, 4)))
      end)
    end
  end
end)
