--- Writes the C files of a bundle.
--
-- A bundle is {name, archs = list of names, the newest first, functions = list
-- of functions}. The functions are those of record.run, with a field `arch` in
-- each variant.
local expression = require "cutelua.bundle.expression"
local header = require "cutelua.bundle.header"
local lz4 = require "cutelua.bundle.lz4"
local core = require "cute.core"
local range = require "cutelua.bundle.range"
local runtime = require "cutelua.bundle.runtime"

local write = {}

-- Element types in the order of their numbers in a bundle, which never change.
local DTYPES = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64",
  "u32", "u16", "u8", "e4m3", "e5m2", "tf32", "i4", "u4", "e2m1", "e3m2",
  "e2m3", "ue8m0", "b1", "boolean"}
local NUMBER = {}
for i, t in ipairs(DTYPES) do NUMBER[t] = i end

-- C types of numbers.
local C_TYPE = {i32 = "int32_t", i64 = "int64_t", f32 = "float", f64 = "double"}

local function number_of(dtype)
  if not NUMBER[dtype] then
    core.fail("bad-argument", ("bundle: tensors of %s cannot be arguments")
      :format(dtype))
  end
  return NUMBER[dtype]
end

local Writer = {}
Writer.__index = Writer

function Writer:add(text, ...)
  self.out[#self.out + 1] = select("#", ...) > 0 and text:format(...) or text
end

-- Writes a constant array and returns its name; "NULL" for an empty array.
-- Equal arrays are written once.
function Writer:array(type, stem, rows)
  if #rows == 0 then return "NULL" end
  local text = table.concat(rows, ",\n  ")
  local key = type .. ":" .. text
  if not self.arrays[key] then
    self.count = self.count + 1
    local name = ("%s_%d"):format(stem, self.count)
    self.arrays[key] = name
    self:add("static const %s %s[] = {\n  %s};\n", type, name, text)
  end
  return self.arrays[key]
end

local function list(v, n, format)
  local out = {}
  for i = 1, n do out[i] = (format or "%d"):format(v and v[i] or 0) end
  return "{" .. table.concat(out, ", ") .. "}"
end

---------------------------------------------------------------------------
-- Code of kernels
---------------------------------------------------------------------------

-- Returns the index of a step's kernel in the table of kernels, adding the
-- kernel if it is new.
function Writer:kernel(step)
  local code = step.code
  local big = step.cluster[1] * step.cluster[2] * step.cluster[3] > 8
  local key = ("%s %d %s %s"):format(code.symbol, step.smem, tostring(big),
    code.cubin)
  if not self.kernel_at[key] then
    table.insert(self.kernels, {code = code, smem = step.smem, big = big,
                                arch = step.arch})
    self.kernel_at[key] = #self.kernels - 1
  end
  return self.kernel_at[key]
end

-- Writes the packed cubins; equal cubins are written once.
function Writer:images()
  local at, rows = {}, {}
  for _, k in ipairs(self.kernels) do
    local cubin = k.code.cubin
    if not at[cubin] then
      local packed = lz4.pack(cubin)
      local padded = packed .. ("\0"):rep(-#packed % 8)
      local words, line = {}, {}
      for i = 1, #padded, 8 do
        line[#line + 1] = ("0x%016x"):format((string.unpack("<i8", padded, i)))
        if #line == 4 then
          words[#words + 1] = table.concat(line, ",")
          line = {}
        end
      end
      if line[1] then words[#words + 1] = table.concat(line, ",") end
      local name = self:array("uint64_t", "image", words)
      rows[#rows + 1] = ("{%s, %d, %d, UINT64_C(0x%016x)}"):format(name,
        #packed, #cubin, lz4.hash(cubin))
      at[cubin] = #rows - 1
    end
    k.image = at[cubin]
  end
  self:add("static const Image images[] = {\n  %s};\n",
           table.concat(rows, ",\n  "))
  rows = {}
  for i, k in ipairs(self.kernels) do
    rows[i] = ('{"%s", %d, %d, %d}'):format(k.code.symbol, k.image, k.smem,
      k.big and 1 or 0)
  end
  self:add("static const Kernel kernels[] = {\n  %s};\n",
           table.concat(rows, ",\n  "))
end

---------------------------------------------------------------------------
-- Tables of functions
---------------------------------------------------------------------------

-- Returns two numbers that represent v. A plain number v yields v and 0. A
-- formula yields 0 and its index in the table of formulas, counted from 1.
function Writer:formula(v)
  if not range.is_formula(v) then return v, 0 end
  local row = ("{INT64_C(%d), INT64_C(%d), %d, %d}"):format(v.a, v.b, v.c or 1,
    v.d)
  if not self.formula_at[row] then
    table.insert(self.formulas, row)
    self.formula_at[row] = #self.formulas
  end
  return 0, self.formula_at[row]
end

-- Returns two lists that represent n numbers and formulas of list v: the first
-- and the second results of Writer:formula.
function Writer:formulas_of(v, n)
  local plain, by = {}, {}
  for i = 1, n do plain[i], by[i] = self:formula(v and v[i] or 0) end
  return plain, by
end

-- Returns the index of tensor map m in the table of maps, adding the map if it
-- is new.
function Writer:map(m)
  local extent, extent_by = self:formulas_of(m.extent, 5)
  local stride, stride_by = self:formulas_of(m.stride, 4)
  local row = ("{%d, %d, %d, %d, %d, %d, %d,\n   %s, %s, %s, %s, %s, %s, %s, "
    .. "%s, %d, %d}"):format(m.im2col and 1 or 0, m.type, m.rank, m.interleave,
    m.swizzle, m.l2, m.fill, list(extent_by, 5), list(stride_by, 4),
    list(extent, 5, "UINT64_C(%d)"), list(stride, 4, "UINT64_C(%d)"),
    list(m.box, 5), list(m.step, 5), list(m.lower, 3), list(m.upper, 3),
    m.channels or 0, m.pixels or 0)
  if not self.map_at[row] then
    table.insert(self.maps, row)
    self.map_at[row] = #self.maps - 1
  end
  return self.map_at[row]
end

function Writer:values(step)
  local rows, maps = {}, 0
  for i, v in ipairs(step.values) do
    local map = 0
    if v.kind == "MAP" or v.kind == "WORK_MAP" then
      map, maps = self:map(v.map), maps + 1
    end
    local n, by = self:formula(v.n or 0)
    rows[i] = ("{%s, %d, %d, %d, INT64_C(%d)}"):format(by > 0 and "COMPUTED"
      or v.kind, v.of, v.mode, map, by > 0 and by or n)
  end
  self.most_values = math.max(self.most_values, #rows)
  self.most_maps = math.max(self.most_maps, maps)
  return self:array("Value", "values", rows), #rows
end

-- Writes a C function that computes a grid; returns its name.
function Writer:grid(grid)
  local body = ("  g[0] = %s;\n  g[1] = %s;\n  g[2] = %s;\n"):format(
    table.unpack(grid))
  for name in pairs(expression.code) do
    if body:find(name .. "%(") then self.uses[name] = true end
  end
  self.count = self.count + 1
  local name = ("grid_%d"):format(self.count)
  self:add("static void %s(const bun_tensor *const *t, const uint64_t *x,\n"
    .. "                 int64_t *g) {\n%s  (void)t;\n  (void)x;\n}\n", name,
    body)
  return name
end

function Writer:step(step)
  if step.kernel == -1 then
    return ("{-1, 0, {0, 0, 0}, 0, {0, 0, 0}, NULL, {1, 1, 1}, {1, 1, 1}, "
      .. "NULL, 0, 0, %d, %d}"):format(step.at, step.n)
  end
  local values, n = self:values(step)
  local flags = {}
  if step.pdl then flags[1] = "PDL" end
  if step.cooperative then flags[#flags + 1] = "COOPERATIVE" end
  local c_code = type(step.grid[1]) == "string"
  local grid, by = self:formulas_of(not c_code and step.grid, 3)
  local is_computed = c_code or by[1] + by[2] + by[3] > 0
  return ("{%d, %s, %s, %d, %s, %s,\n   %s, %s, %s, %d, %d, 0, 0}"):format(
    self:kernel(step), flags[1] and table.concat(flags, " | ") or "0",
    list(grid, 3), is_computed and 1 or 0, list(by, 3),
    c_code and self:grid(step.grid) or "NULL",
    list(step.block, 3), list(step.cluster, 3), values, n, step.together)
end

function Writer:want(t)
  local rows, exact = {}, 1
  for i, extent in ipairs(t.shape) do
    local div, far = t.shape_div and t.shape_div[i] or 0,
      t.stride_div and t.stride_div[i] or 0
    local own, by = self:formula(extent)
    local stride, stride_by = self:formula(t.stride[i])
    rows[i] = ("{%d, %d, %d, %d, %d, %d}"):format(div > 0 and 0 or own,
      far > 0 and 0 or stride, div, far, by, stride_by)
    if div + far + by + stride_by > 0 then exact = 0 end
  end
  return ("{%d, %d, %d, %d, %s}"):format(#rows, t.align, t.wide and 1 or 0,
    exact, self:array("Mode", "modes", rows))
end

function Writer:variant(v)
  local wants, equals, steps = {}, {}, {}
  for i, t in ipairs(v.tensors) do wants[i] = self:want(t) end
  for i, e in ipairs(v.equal or {}) do
    equals[i] = "{" .. table.concat(e, ", ") .. "}"
  end
  for i, s in ipairs(v.steps) do
    s.arch = v.arch
    steps[i] = self:step(s)
  end
  local s = v.size
  local size = s and ("{%d, %d, %d, %d, %d, %d, %d}"):format(s.tensor, s.mode,
    s.from, s.to, s.step, s.least, s.most) or "{-1, 0, 0, 0, 1, 0, 0}"
  return ("{%d, %s, %s, %s, %d,\n   %s, %d, %d}"):format(self.arch_at[v.arch],
    size,
    self:array("Want", "wants", wants), self:array("Equal", "equals", equals),
    #equals, self:array("Step", "steps", steps), #steps, v.work)
end

-- Returns the pairs of tensors that may not overlap in any variant.
local function apart_of(f)
  local count, rows = {}, {}
  for _, v in ipairs(f.variants) do
    for _, pair in ipairs(v.apart) do
      local key = table.concat(pair, ", ")
      count[key] = (count[key] or 0) + 1
    end
  end
  for key, n in pairs(count) do
    if n == #f.variants then rows[#rows + 1] = "{" .. key .. "}" end
  end
  table.sort(rows)
  return rows
end

function Writer:entry(f)
  local tensors, variants, written = {}, {}, {}
  for _, v in ipairs(f.variants) do
    for i, t in ipairs(v.tensors) do written[i] = written[i] or t.written end
  end
  for i, t in ipairs(f.variants[1].tensors) do
    tensors[i] = ('{"%s", %d, %d, %d}'):format(t.name, number_of(t.dtype),
      t.bits, written[i] and 1 or 0)
  end
  for i, v in ipairs(f.variants) do variants[i] = self:variant(v) end
  local apart = apart_of(f)
  local pairs_name = "NULL"
  if apart[1] then
    self.count = self.count + 1
    pairs_name = ("apart_%d"):format(self.count)
    self:add("static const int %s[][2] = {%s};\n", pairs_name,
             table.concat(apart, ", "))
  end
  return ('{"%s", %s, %d, %s, %d,\n   %s, %d}'):format(f.name,
    self:array("Tensor", "tensors", tensors), #tensors, pairs_name, #apart,
    self:array("Variant", "variants", variants), #variants)
end

---------------------------------------------------------------------------
-- Functions
---------------------------------------------------------------------------

local function works(f)
  for _, v in ipairs(f.variants) do
    if v.work > 0 then return true end
  end
  return false
end
write.works = works

-- Returns the parameters and the parameter names of a C function, without the
-- version. The C function is the launch function or, with `query`, the function
-- that returns the workspace's size.
local function parameters(f, query)
  local types, names = {}, {}
  local function add(type, name)
    types[#types + 1], names[#names + 1] = type .. name, name
  end
  for _, t in ipairs(f.variants[1].tensors) do
    add("const bun_tensor *", t.name)
  end
  if query then
    add("size_t *", "bytes")
    return types, names
  end
  for _, n in ipairs(f.variants[1].numbers) do
    add(C_TYPE[n.dtype] .. " ", n.name)
  end
  if works(f) then
    add("void *", "work")
    add("size_t ", "bytes")
  end
  add("bun_stream ", "stream")
  return types, names
end

-- Returns text with a bundle's name instead of "bun".
local function renamed(text, name)
  return (text:gsub("%f[%w_]bun_", name .. "_"):gsub("%f[%w_]BUN_",
    name:upper() .. "_"))
end
write.renamed = renamed

-- Name of the bundle being written. Its length affects line breaks.
local own_name = "bun"

-- Breaks a list of words into lines of at most 78 characters. The first line
-- begins with `start`, and the last ends with `ending`.
local function wrapped(start, words, ending)
  start = renamed(start, own_name)
  local lines, line = {}, start
  local indent = (" "):rep(math.min(#start, 40))
  for i, w in ipairs(words) do
    local piece = renamed(w, own_name) .. (i < #words and ", " or ending)
    if #line + #piece > 78 and line ~= indent then
      lines[#lines + 1] = (line:gsub(" +$", ""))
      line = indent
    end
    line = line .. piece
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

-- Returns the head of the function bun_NAME_v, whose first parameter is the
-- version.
local function head(name, types, ending)
  return wrapped(("int bun_%s_v("):format(name),
    {"uint64_t version", table.unpack(types)}, ending)
end

-- Returns the declaration of NAME_v, and an inline function NAME that calls it
-- with the header's version.
local function declaration(name, types, names)
  return table.concat({head(name, types, ");"),
    wrapped(("static inline int bun_%s("):format(name), types, ") {"),
    wrapped(("  return bun_%s_v("):format(name),
      {"BUN_VERSION", table.unpack(names)}, ");"), "}"}, "\n")
end

-- Returns a number or formula as C code, in which `m` is the size.
local function number_text(v)
  if not range.is_formula(v) then return "" .. v end
  local text = v.c and ("%d m"):format(v.c) or "m"
  if v.d ~= 1 then text = ("ceil(%s / %d)"):format(text, v.d) end
  if v.b ~= 1 then text = ("%d %s"):format(v.b, text) end
  return v.a == 0 and text or ("%d + %s"):format(v.a, text)
end

local function sizes_text(t)
  local out = {}
  for i, extent in ipairs(t.shape) do
    local div, far = t.shape_div and t.shape_div[i] or 0,
      t.stride_div and t.stride_div[i] or 0
    local size = div == 0 and number_text(extent) or div == 1 and "any"
      or "a multiple of " .. div
    local stride = far == 0 and number_text(t.stride[i])
      or far == 1 and "any"
      or "a multiple of " .. far
    out[i] = ("%s (stride %s)"):format(size, stride)
  end
  return table.concat(out, ", ")
end

-- Returns the comment of a C function, which lists the arguments that its
-- variants accept.
local function comment(f)
  local lines = {("// %s"):format(f.name)}
  for _, v in ipairs(f.variants) do
    local s = v.size
    lines[#lines + 1] = ("// - %s%s, %d bytes of workspace:"):format(v.arch,
      s and (", m = %d to %d in steps of %d"):format(s.from, s.to, s.step)
      or "", v.work)
    for _, t in ipairs(v.tensors) do
      lines[#lines + 1] = ("//   %s: %s %s, aligned to %d bytes%s"):format(
        t.name, t.dtype, sizes_text(t), t.align, t.written and ", written"
        or "")
    end
  end
  return table.concat(lines, "\n")
end

local function declarations(f)
  local out = {comment(f), declaration(f.name, parameters(f))}
  if works(f) then
    out[3] = "// Sets *bytes to the size of the workspace for these tensors."
    out[4] = declaration(f.name .. "_workspace", parameters(f, true))
  end
  return table.concat(out, "\n") .. "\n"
end

--- Returns C code for the 64 bits of a number. `text` is the C code of the
-- number.
function write.bits(dtype, text)
  if dtype == "f32" or dtype == "f64" then
    return ("bits_of_%s(%s)"):format(dtype, text)
  end
  return ("(%s)%s"):format(dtype == "i32" and "uint32_t" or "uint64_t", text)
end

-- Returns C code that defines a function.
local function definition(f, index)
  local tensors, numbers = {}, {}
  for i, t in ipairs(f.variants[1].tensors) do tensors[i] = t.name end
  for i, n in ipairs(f.variants[1].numbers) do
    numbers[i] = write.bits(n.dtype, n.name)
  end
  local list_text = "  const bun_tensor *const tensor_list[] = {"
  if not numbers[1] then numbers[1] = "0" end
  local out = {head(f.name, parameters(f), ") {"),
    wrapped(list_text, tensors, "};"),
    wrapped("  const uint64_t number_list[] = {", numbers, "};"),
    ("  return launch(version, &entries[%d], tensor_list, number_list,\n"
    .. "                %s, stream);\n}\n"):format(index,
    works(f) and "work, bytes" or "NULL, 0")}
  if works(f) then
    out[5] = head(f.name .. "_workspace", parameters(f, true), ") {")
    out[6] = wrapped(list_text, tensors, "};")
    out[7] = ("  return workspace(version, &entries[%d], tensor_list,\n"
      .. "                   bytes);\n}\n"):format(index)
  end
  return table.concat(out, "\n")
end

local BITS = [[
static uint64_t bits_of_@(TYPE v) {
  WORD u;
  memcpy(&u, &v, sizeof u);
  return u;
}
]]

-- Returns the C functions that convert floats to bits, as far as bundle b needs
-- them.
local function bit_functions(b)
  local used, out = {}, {}
  for _, f in ipairs(b.functions) do
    for _, n in ipairs(f.variants[1].numbers) do used[n.dtype] = true end
  end
  for _, row in ipairs {{"f32", "float", "uint32_t"},
                        {"f64", "double", "uint64_t"}} do
    if used[row[1]] then
      out[#out + 1] = (BITS:gsub("@", row[1]):gsub("TYPE", row[2])
        :gsub("WORD", row[3]))
    end
  end
  return table.concat(out)
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

-- Returns the enumeration of the element types that the functions use.
local function dtype_enum(b)
  local used, rows = {}, {}
  for _, f in ipairs(b.functions) do
    for _, v in ipairs(f.variants) do
      for _, t in ipairs(v.tensors) do used[t.dtype] = true end
    end
  end
  for i, t in ipairs(DTYPES) do
    if used[t] then
      rows[#rows + 1] = ("  BUN_%s = %d"):format(t:upper(), i)
    end
  end
  return "// Element types, in the names of cutelua.\nenum bun_dtype {\n"
    .. table.concat(rows, ",\n") .. "\n};\n"
end

local function dtype_names()
  local rows = {'"none"'}
  for i, t in ipairs(DTYPES) do rows[i + 1] = ('"%s"'):format(t) end
  return wrapped("static const char *const dtypes[] = {", rows, "};") .. [[


static const char *dtype_name(int dtype) {
  int n = (int)(sizeof dtypes / sizeof *dtypes);
  return dtype > 0 && dtype < n ? dtypes[dtype] : "unknown";
}
]]
end

-- Returns the rows of the table of architectures.
local function arch_rows(archs)
  local rows = {}
  for i, a in ipairs(archs) do
    local major, minor, suffix = a:match "^sm_(%d+)(%d)(%a?)$"
    rows[i] = ('{"%s", %s, %s, %d}'):format(a, major, minor,
      suffix == "a" and 1 or 0)
  end
  return rows
end

--- Returns the text of the bundle's header file. `version` has 16 hexadecimal
-- digits.
function write.header(b, version)
  own_name = b.name
  local out = {("// %s.h: launch functions of GPU kernels, by cutelua %s. See "
    .. "docs/bundle.md of cutelua.\n"):format(b.name, core.version),
    (header:gsub("@VERSION@", "0x" .. version):gsub("#ifdef __cplusplus\n",
      "#define BUN_RANK 8\n\n%0", 1)), dtype_enum(b)}
  for _, f in ipairs(b.functions) do out[#out + 1] = declarations(f) end
  out[#out + 1] = "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
  return renamed(table.concat(out, "\n"), b.name)
end

--- Returns the text of the bundle's C file.
function write.code(b)
  own_name = b.name
  local w = setmetatable({out = {}, arrays = {}, count = 0, kernels = {},
    kernel_at = {}, maps = {}, map_at = {}, most_values = 1, most_maps = 1,
    uses = {}, arch_at = {}, formulas = {}, formula_at = {}}, Writer)
  for i, a in ipairs(b.archs) do w.arch_at[a] = i - 1 end
  local rows = {}
  for i, f in ipairs(b.functions) do rows[i] = w:entry(f) end
  w:add("static const Entry entries[] = {\n  %s};\n",
        table.concat(rows, ",\n  "))
  w:images()
  w:add("static const Map maps[] = {\n  %s};\n", w.maps[1]
    and table.concat(w.maps, ",\n  ")
    or "{0, 0, 0, 0, 0, 0, 0, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, 0, 0}")
  w:add("static const Formula formulas[] = {\n  %s};\n", w.formulas[1]
    and table.concat(w.formulas, ",\n  ") or "{0, 0, 1, 1}")
  w:add("static const Arch archs[] = {%s};\n",
        table.concat(arch_rows(b.archs), ", "))
  w:add('static const char arch_names[] = "%s";\n',
        table.concat(b.archs, " "))
  local helpers = {}
  for name, text in pairs(expression.code) do
    if w.uses[name] then helpers[#helpers + 1] = text end
  end
  table.sort(helpers)
  local limits = {}
  for _, row in ipairs {{"KERNELS", #w.kernels}, {"ARCHS", #b.archs},
      {"ENTRIES", #b.functions}, {"VALUES", w.most_values},
      {"MAPS", w.most_maps}} do
    limits[#limits + 1] = ("#define BUN_%s %d\n"):format(row[1], row[2])
  end
  local out = {("// %s.c: GPU kernels and their launch functions, by cutelua "
    .. "%s.\n// Link with -ldl -pthread where the C library needs it.\n")
    :format(b.name, core.version), ('#include "%s.h"\n'):format(b.name),
    runtime.types, table.concat(limits), table.concat(helpers),
    table.concat(w.out, "\n"), dtype_names(), bit_functions(b), runtime.code}
  for _, f in ipairs(b.functions) do
    if works(f) then
      out[#out + 1] = runtime.workspace
      break
    end
  end
  for i, f in ipairs(b.functions) do out[#out + 1] = definition(f, i - 1) end
  b.kernels = w.kernels
  return renamed(table.concat(out, "\n"), b.name)
end

return write
-- SPDX-License-Identifier: MIT
