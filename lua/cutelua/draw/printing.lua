--- Functions that print inside a kernel: cute.printf prints any values of a
-- kernel, and cute.print_tensor prints a tensor. The device's printf accepts at
-- most 32 scalars. A call within that limit becomes one printf, whose output is
-- not interleaved with other output. In the output of a longer call, only each
-- line stays intact; the lanes of a warp print one after another.
local core = require "cute.core"
local host = require "cutelua.draw.print"
local sign = require "cute.lang.signature"

local printing = {}

-- The largest number of values in one printf of the device.
local MOST = 32
-- The largest number of bytes in the format string of one printf.
local MOST_TEXT = 3000
-- The largest number of elements in memory that unrolled code prints; for more
-- elements, a loop is generated.
local UNROLLED = 64
local BY_TYPE = "%\1"    -- see core/bind/printlib.c
-- The largest numbers of elements that printf (of one value) and print_tensor
-- print by default.
local LIMIT_VALUES, LIMIT_TENSOR = 64, 1024
-- The largest nesting depth of tables.
local DEEPEST = 32

---------------------------------------------------------------------------
-- Options
---------------------------------------------------------------------------

local OPTIONS = {limit = true, when = true, thread = true, block = true}

-- Converts a traced number to a Lua number if its value is known.
local function plain(x)
  if core.typename(x) ~= "value" then return x end
  local known = core.known(x)
  if known == nil then return x end
  return known
end

local function both(a, b)
  if a == true then return b end
  if b == true then return a end
  if type(a) == "boolean" then a, b = b, a end
  -- A traced operand is combined even with `false`: otherwise a note would say
  -- that the operand is unused.
  return plain(a & b)
end

-- Returns a condition that is true in the thread (or block) that an option
-- selects: thread = n or {x, y, z}. Dimensions of extent 1 are not compared.
local function is_at(what, at, index, dims)
  if at == nil then return true end
  local want = type(at) == "table" and at or {at}
  local cond = true
  for i = 1, 3 do
    local n = want[i] or 0
    if #want > 3 or math.type(n) ~= "integer"
      and core.typename(n) ~= "value" then
      core.fail("bad-argument", ("%s = %s; one to three indices are "
        .. "needed"):format(what, core.show(at)))
    end
    if n ~= 0 or plain(dims[i]) ~= 1 then
      cond = both(cond, plain(core.eq(index[i], n)))
    end
  end
  return cond
end

-- Returns the condition under which a thread prints, formed from the options
-- `thread`, `block` and `when`. Also returns the limit of elements.
local function read_options(what, opts, otherwise)
  for name in pairs(opts) do
    if not OPTIONS[name] then
      sign.unknown("option", name, OPTIONS, what)
    end
  end
  local limit = opts.limit or otherwise
  if math.type(limit) ~= "integer" or limit < 1 then
    core.fail("bad-argument", ("%s: limit = %s; 1 or more elements are needed")
      :format(what, core.show(limit)))
  end
  local when, arch = opts.when, require "cute.arch"
  if when == nil then when = true end
  if type(when) ~= "boolean" and (core.typename(when) ~= "value"
    or core.dtype_of(when) ~= core.boolean) then
    core.fail("bad-argument", ("%s: when = %s; a boolean is needed")
      :format(what, core.show(when)))
  end
  local cond = both(
    is_at("block", opts.block, {arch.block_idx()}, {arch.grid_dim()}),
    is_at("thread", opts.thread, {arch.thread_idx()}, {arch.block_dim()}))
  return both(plain(when), cond), limit
end

---------------------------------------------------------------------------
-- Pieces of output
---------------------------------------------------------------------------

-- Appends text to a list of pieces of output. A piece is one of three things:
-- text; {conversion, scalar or a function that loads it}; or a function that
-- emits code that prints, such as a loop.
local function say(out, text)
  for line, feed in text:gsub("%%", "%%%%"):gmatch "([^\n]*)(\n?)" do
    if line ~= "" then out[#out + 1] = line end
    if feed ~= "" then out[#out + 1] = feed end
  end
end

local function put(out, conversion, value)
  out[#out + 1] = {conversion, value}
end

-- Returns for each piece of output (see `say`) the number of values from this
-- piece to the end of its line.
local function to_line_end(pieces)
  local left, n = {}, 0
  for i = #pieces, 1, -1 do
    local p = pieces[i]
    if type(p) == "table" then n = n + 1 elseif p == "\n" then n = 0 end
    left[i] = n
  end
  return left
end

-- Prints pieces of output (see `say`) with as few printfs as possible. A new
-- printf begins at the start of a line if the whole line fits in one printf.
local function emit(pieces)
  local text, values, bytes = {}, {}, 0
  local left = to_line_end(pieces)
  local function flush()
    if #text > 0 then core.printf(table.concat(text), table.unpack(values)) end
    text, values, bytes = {}, {}, 0
  end
  for i, p in ipairs(pieces) do
    if pieces[i - 1] == "\n" and #values + left[i] > MOST then flush() end
    if type(p) == "function" then
      flush()
      p()
    elseif type(p) == "table" then
      if #values == MOST or bytes > MOST_TEXT then flush() end
      local v = p[2]
      if type(v) == "function" then v = v() end
      text[#text + 1], values[#values + 1] = p[1], v
      bytes = bytes + #p[1]
    else
      for at = 1, #p, MOST_TEXT do
        local part = p:sub(at, at + MOST_TEXT - 1)
        if bytes + #part > MOST_TEXT then flush() end
        text[#text + 1], bytes = part, bytes + #part
      end
    end
  end
  flush()
end

-- Reports whether the pieces of an output need more than one printf.
local function are_many(pieces)
  local values, bytes = 0, 0
  for _, p in ipairs(pieces) do
    if type(p) == "function" then return true end
    values = values + (type(p) == "table" and 1 or 0)
    bytes = bytes + #(type(p) == "table" and p[1] or p)
  end
  return values > MOST or bytes > MOST_TEXT
end

-- Prints pieces of output (see `say`) in threads where cond is true. one: true
-- if only a single thread prints.
local function print_where(cond, one, pieces)
  if cond == false then return end
  if cond ~= true then core.open_if(cond) end
  local apart = not one and are_many(pieces)
  if apart then
    local lane = core.open_for(0, 32, 1, 1)
    core.open_if(core.sreg "laneid":eq(lane))
  end
  emit(pieces)
  if apart then
    core.close()
    core.close()
  end
  if cond ~= true then core.close() end
end

---------------------------------------------------------------------------
-- Values as pieces
---------------------------------------------------------------------------

local piece

-- Appends the text of a layout or tensor x to a list of pieces. Each `?` in the
-- text stands for a traced number of x, which is printed in its place.
local function with_numbers(out, text, x)
  local numbers, at, k = core.traced_numbers(x), 1, 0
  for from, to in text:gmatch "()%?%{?d?i?v?=?%d*%}?()" do
    say(out, text:sub(at, from - 1))
    k, at = k + 1, to
    put(out, BY_TYPE, numbers[k])
  end
  say(out, text:sub(at))
end

local function scalar(out, x, conversion)
  local kind = core.typename(x)
  if math.type(x) == "integer" and conversion:find "^%%%d?%d?d$" then
    say(out, conversion:format(x))
  elseif kind == "value" or kind == "number" and conversion ~= BY_TYPE then
    put(out, conversion, x)
  elseif math.type(x) == "float" then
    say(out, ("%g"):format(x))
  else
    say(out, tostring(x))
  end
end

-- Returns the extents of the modes of a shape, or false if an extent is traced.
local function extents(x)
  local list = {}
  for i = 1, core.rank(x) do
    list[i] = core.size(x, i - 1)
    if math.type(list[i]) ~= "integer" then return false end
  end
  return list
end

-- Appends nested lists such as [[a, b], [c, ... 2 more]] to a list of pieces.
-- get(i, j, ...) returns an element; `sizes` are the extents. At most `left`
-- elements are shown.
local function nested(out, get, sizes, left, conversion)
  local total, shown, cut = 1, 0, false
  for _, n in ipairs(sizes) do total = total * n end
  local function walk(mode, at)
    say(out, "[")
    for i = 0, sizes[mode] - 1 do
      if cut then break end
      if i > 0 then say(out, ", ") end
      at[mode] = i
      if mode < #sizes then
        walk(mode + 1, at)
      elseif shown == left then
        cut = true
        say(out, ("... %d more"):format(total - shown))
      else
        shown = shown + 1
        piece(out, get(table.unpack(at, 1, mode)), conversion, left)
      end
    end
    say(out, "]")
  end
  walk(1, {})
end

-- Appends a piece that prints the elements of a tensor with traced extents as
-- one list, in a loop.
local function looped(out, t, left, conversion)
  local n = core.size(t)
  say(out, "[")
  out[#out + 1] = function()
    local i = core.open_for(0, core.min(n, left), 1, 1)
    local x = {}
    piece(x, t(i), conversion, left)
    core.open_if(i:gt(0))
    core.printf ", "
    core.close()
    emit(x)
    core.close()
    core.open_if(core.gt(n, left))
    core.printf(", ... " .. BY_TYPE .. " more", n - left)
    core.close()
  end
  say(out, "]")
end

-- Reports whether the elements of t are in memory. They are then loaded only in
-- threads that print them.
local function in_memory(t) return t.memspace:find "mem$" ~= nil end

local function tensor_piece(out, t, conversion, limit)
  local text = tostring(t)
  -- A tensor with the layout "1:0" is a pointer, whose address is printed.
  if text:find " o 1:0$" then
    return with_numbers(out, text:sub(1, -7), t)
  end
  local sizes = extents(t)
  if not sizes then return looped(out, t, limit, conversion) end
  nested(out, in_memory(t) and function(...)
    local at = {...}
    return function() return t(table.unpack(at)) end
  end or t, sizes, limit, conversion)
end

local function vector_piece(out, v, conversion, limit)
  local layout = core.make_layout(v.shape)
  nested(out, function(...) return v[layout(...)] end, extents(layout), limit,
         conversion)
end

-- Appends a value that the user passed to a list of pieces of output.
local function user_piece(out, x, conversion, limit, depth)
  if type(x) == "function" or depth > DEEPEST then
    core.fail("bad-argument", "printf: " .. (depth > DEEPEST
      and ("tables nest at most %d deep"):format(DEEPEST)
      or "a function cannot be printed: print its result"))
  end
  piece(out, x, conversion, limit, depth)
end

local function tuple_piece(out, t, conversion, limit, depth)
  say(out, "(")
  for i = 1, #t do
    if i > 1 then say(out, ",") end
    user_piece(out, t[i], conversion, limit, (depth or 0) + 1)
  end
  say(out, ")")
end

function piece(out, x, conversion, limit, depth)
  local kind = core.typename(x)
  if kind == "tensor" then
    tensor_piece(out, x, conversion, limit)
  elseif kind == "vector" then
    vector_piece(out, x, conversion, limit)
  elseif kind == "layout" then
    with_numbers(out, tostring(x), x)
  elseif kind == "function" then
    put(out, conversion, x)
  elseif type(x) == "table" then
    tuple_piece(out, x, conversion, limit, depth)
  else
    scalar(out, x, conversion)
  end
end

---------------------------------------------------------------------------
-- cute.printf
---------------------------------------------------------------------------

-- Splits a format and its values into pieces. Also returns the number of
-- conversions.
local function format_pieces(format, values, limit)
  local out, at, k = {}, 1, 0
  while at <= #format do
    local from = format:find("[{%%]", at) or #format + 1
    say(out, format:sub(at, from - 1))
    at = from
    local conversion = format:match("^{}", at)
      or format:match("^%%[-+ #0-9.hlqjzt]*[^-+ #0-9.hlqjzt]?", at)
    if conversion == "%%" or not conversion then
      say(out, format:sub(at, at))
    else
      k = k + 1
      local word = conversion:match "^{}$" or conversion:match "^%%s$"
      if k <= values.n then
        local of_type = word and (word == "{}" or
          core.typename(values[k]) ~= "value")
        user_piece(out, values[k], of_type and BY_TYPE or conversion, limit, 0)
      end
    end
    at = at + #(conversion or "{")
  end
  return out, k
end

local function check_count(n, given)
  if n == given then return end
  core.fail("bad-argument", ("printf: the format has %d conversion%s and %d "
    .. "value%s follow%s%s"):format(n, n == 1 and "" or "s", given,
    given == 1 and "" or "s", given == 1 and "s" or "", given > n and
    "\n  thread_idx() as the last argument returns three values: write "
      .. "(thread_idx())" or ""))
end

local function are_options(x)
  return type(x) == "table" and getmetatable(x) == nil and next(x) ~= nil
    and #x == 0
end

--- Prints on the device. In the format, `{}` prints a value according to its
-- type; C's conversions format numbers. Values are scalars, vectors, tensors,
-- layouts, nested tables and strings. A tensor prints its elements, which a C
-- conversion such as %g can format; a pointer prints its address. If the last
-- argument is a table with names, it holds options: `limit`, the number of
-- elements printed of one value (64 when absent); `when`, a boolean; `thread`
-- and `block`, each an index or {x, y, z}. The last three select the printing
-- threads.
---@param format string
---@param ... any
function printing.printf(format, ...)
  local values = table.pack(...)
  -- Outside a kernel, core.printf raises an error.
  if not core.tracing() then return core.printf(format) end
  local opts = {}
  if are_options(values[values.n]) then
    opts = values[values.n]
    values.n = values.n - 1
  end
  local cond, limit = read_options("printf", opts, LIMIT_VALUES)
  local pieces, n = format_pieces(format, values, limit)
  check_count(n, values.n)
  print_where(cond, opts.thread ~= nil, pieces)
end

---------------------------------------------------------------------------
-- cute.print_tensor
---------------------------------------------------------------------------

-- Returns the conversion that formats an element of type t like print_tensor on
-- the host.
local function cell_conversion(t)
  return t.is_float and " %10.2e" or t == core.boolean and " %5s" or " %4d"
end

-- Returns the width of an element in characters, for the lines between
-- matrices.
local function cell_width(t)
  if t.memspace == "coord" then return 8 end
  return t.dtype.is_float and 11 or t.dtype == core.boolean and 6 or 5
end

-- Returns a table that describes the printed part of tensor t, which has at
-- most `limit` elements. The fields of the table are:
--   t, rank        the tensor and its rank
--   n              the extents of modes 0 to 3
--   rows, columns  numbers of printed rows (of all matrices) and columns
--   all            number of elements of t
--   registers, memory   whether t is in registers or in memory
local function table_of(t, limit)
  local rank = core.rank(t)
  if rank > 4 then
    core.fail("shape-mismatch", "print_tensor prints tensors of rank 1 to 4, "
      .. "got\n  " .. tostring(t))
  end
  local n = {}
  for i = 1, 4 do n[i] = i <= rank and core.size(t, i - 1) or 1 end
  local rows, columns = n[1] * n[3] * n[4], core.min(n[2], limit)
  local most = core.max(limit // core.max(columns, 1), 1)
  return {t = t, rank = rank, n = n, columns = columns,
          rows = core.min(rows, most), all = rows * n[2],
          registers = t.memspace == "rmem", memory = in_memory(t)}
end

-- Returns the pieces of the line that separates matrices, if row r is the first
-- row of a matrix but not of the first matrix; else none.
local function rule_pieces(g, r)
  if g.rank < 3 then return {} end
  local width = math.type(g.n[2]) == "integer" and g.columns * cell_width(g.t)
    or 40
  local rest = r // g.n[1]
  local function line(c) return c:rep(width) .. "\n" end
  if math.type(r) == "integer" and math.type(g.n[1] * g.n[3]) == "integer" then
    if r == 0 or r % g.n[1] ~= 0 then return {} end
    return {line(rest % g.n[3] == 0 and "=" or "-")}
  end
  return {function()
    core.open_if(core.gt(r, 0) & core.eq(r % g.n[1], 0))
    core.open_if(core.ne(rest % g.n[3], 0))
    core.printf(line "-")
    core.open_else()
    core.printf(line "=")
    core.close()
    core.close()
  end}
end

-- Appends cells of row r of g (see table_of) to a list of pieces: `count` cells
-- from column `from` on.
local function cells(out, g, r, from, count)
  local rest = r // g.n[1]
  local at = {r % g.n[1], from, rest % g.n[3], rest // g.n[3]}
  for j = 0, count - 1 do
    at[2] = from + j
    local where = table.move(at, 1, g.rank, 1, {})
    if g.memory then
      put(out, cell_conversion(g.t.dtype), function()
        return g.t(table.unpack(where))
      end)
    else
      say(out, " ")
      piece(out, g.t(table.unpack(where)), "%2d")
    end
  end
end

local function cells_in_loop(out, g, r, first, last, step)
  out[#out + 1] = function()
    local j = core.open_for(first, last, step, 1)
    local some = {}
    cells(some, g, r, j, step)
    emit(some)
    core.close()
  end
end

local function row_pieces(g, r)
  local out, columns = rule_pieces(g, r), g.columns
  local static = math.type(columns) == "integer"
  if static and (g.registers or columns <= UNROLLED) then
    cells(out, g, r, 0, columns)
  else
    local whole = plain(columns // MOST * MOST)
    if whole ~= 0 then cells_in_loop(out, g, r, 0, whole, MOST) end
    if static then cells(out, g, r, whole, columns - whole)
    else cells_in_loop(out, g, r, whole, columns, 1) end
  end
  if static and math.type(g.n[2]) == "integer" then
    if g.n[2] > columns then say(out, " ...") end
  else
    out[#out + 1] = function()
      core.open_if(core.gt(g.n[2], columns))
      core.printf " ..."
      core.close()
    end
  end
  say(out, "\n")
  return out
end

-- Appends the rows of g (see table_of) to a list of pieces, without a loop in
-- the generated code.
local function unrolled_rows(out, g)
  for r = 0, g.rows - 1 do
    table.move(row_pieces(g, r), 1, MOST_TEXT, #out + 1, out)
  end
end

local function rest_pieces(out, g)
  local left = g.all - g.rows * g.columns
  if math.type(left) == "integer" then
    if left > 0 then say(out, ("... %d more\n"):format(left)) end
    return
  end
  out[#out + 1] = function()
    core.open_if(core.gt(left, 0))
    core.printf("... " .. BY_TYPE .. " more\n", left)
    core.close()
  end
end

local function tensor_pieces(t, limit)
  local g, out = table_of(t, limit), {}
  with_numbers(out, tostring(t), t)
  say(out, ":\n")
  local static = math.type(g.rows) == "integer"
    and math.type(g.columns) == "integer"
  if g.registers or static and g.rows * g.columns <= UNROLLED then
    unrolled_rows(out, g)
  else
    out[#out + 1] = function()
      local r = core.open_for(0, g.rows, 1, 1)
      emit(row_pieces(g, r))
      core.close()
    end
  end
  rest_pieces(out, g)
  return out
end

--- Prints all elements of a tensor of rank 1 to 4 in CuTe's format, in which
-- mode 0 numbers the rows. A coordinate tensor prints its coordinates. In a
-- kernel, each thread prints its own tensor on the device. Options: `limit`,
-- the number of elements (1024 when absent); `when`, a boolean; `thread` and
-- `block`, each an index or {x, y, z}. The last three select the printing
-- threads.
---@param tensor table
---@param opts? table
function printing.print_tensor(tensor, opts)
  if not core.tracing() or tensor.memspace == "host" then
    if opts and next(opts) then
      core.fail("bad-argument", "print_tensor: limit, when, thread and block "
        .. "apply only inside a kernel")
    end
    local there = tensor.device and tensor.device ~= "host"
    return host.print_tensor(there and tensor:to "host" or tensor)
  end
  local cond, limit = read_options("print_tensor", opts or {}, LIMIT_TENSOR)
  print_where(cond, (opts or {}).thread ~= nil, tensor_pieces(tensor, limit))
end

return printing
-- SPDX-License-Identifier: MIT
