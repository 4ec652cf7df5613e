--- Collects the public names: everything that `require "cute"` reaches, and the
-- classes of its objects with their methods and fields. Each name comes with
-- its comments.
--
-- If C code defines a name, its comments are in lua/cute/meta/, which editors
-- also read. If Lua code defines it, they are above the definition. An alias
-- has the comment of the original name.
local comments = require "cutelua.doc.comments"
local core = require "cute.core"
local cute = require "cute"
local sign = require "cute.lang.signature"

local names = {}

---------------------------------------------------------------------------
-- Topics
---------------------------------------------------------------------------

-- Topics in the order of the reference. Each topic has a title, and either the
-- prefix of its names, or the modules that define functions in the namespace
-- `cute` itself. A name defined in lua/cute/meta belongs to the topic whose
-- title is above its definition.
local TOPICS = {
  {"Kernels", modules = "cute.lang.kernel cutelua.ptx.raw cutelua.debug "
    .. "cutelua.cache.many "
    .. "cutelua.ptx cutelua.ptx.triton cutelua.ptx.dsl cute.lang.devices "
    .. "cutelua.analyses.call "
    .. "cutelua.analyses.prepared"},
  {"Loops, branches, variables",
   modules = "cute.lang.trace cute.lang.branch"},
  {"Layouts: making"}, {"Layouts: asking"}, {"Layouts: coordinates"},
  {"Layouts: modes"}, {"Layouts: algebra"}, {"Layouts: tiles"},
  {"Layouts: swizzles and bases"},
  {"Tuples", modules = "cute.tuple"}, {"Tuples: comparison"},
  {"Element types", modules = "cute.sparse_elem"},
  {"Tensors: making", modules = "cute.pointer"},
  {"Tensors: parts and copies of memory", modules = "cute.algorithm"},
  {"Atoms"}, {"Tiled operations"}, {"Copies and products"},
  {"Mathematics", modules = "cute.math"},
  {"Shared memory", modules = "cute.smemstruct"},
  {"Symbolic arguments", modules = "cute.symbolic"},
  {"Streams and graphs", modules = "cute.stream"},
  {"Printing and drawing", modules = "cutelua.draw cutelua.draw.print "
    .. "cutelua.draw.printing cutelua.program.explain cutelua.program.diff "
    .. "cutelua.profile.swizzle cutelua.doc"},
  {"cute.arch: who and where", names = "cute.arch."},
  {"cute.arch: threads together", modules = "cute.arch.warp"},
  {"cute.arch: memory", modules = "cute.arch.memory"},
  {"cute.arch: arithmetic", modules = "cute.arch.bits"},
  {"cute.arch: packed numbers", modules = "cute.arch.packed"},
  {"cute.arch: mbarriers", modules = "cute.arch.mbarrier"},
  {"cute.arch: clusters", modules = "cute.arch.cluster"},
  {"cute.arch: tensor memory", modules = "cute.arch.tmem"},
  {"cute.nvgpu", names = "cute.nvgpu."},
  {"cute.nvgpu.cpasync", names = "cute.nvgpu.cpasync.",
    modules = "cute.nvgpu.sm90.cpasync"},
  {"cute.nvgpu.warp", names = "cute.nvgpu.warp."},
  {"cute.nvgpu.warpgroup", names = "cute.nvgpu.warpgroup."},
  {"cute.nvgpu.tcgen05", names = "cute.nvgpu.tcgen05."},
  {"cute.pipeline", names = "cute.pipeline."},
  {"cute.utils", names = "cute.utils."},
  {"cute.tiles", names = "cute.tiles."},
  {"cute.ops", names = "cute.ops."},
  {"cute.ops.reference", names = "cute.ops.reference."},
  {"cute.testing", names = "cute.testing."},
  {"cute.gpu", names = "cute.gpu."},
  {"cute.jit", names = "cute.jit."},
  {"cute.npy", names = "cute.npy."},
  {"cute.npz", names = "cute.npz."},
  {"cute.safetensors", names = "cute.safetensors."},
  {"cute.gguf", names = "cute.gguf."},
  {"cute.cli", names = "cute.cli."},
  {"cute.bundle", names = "cute.bundle."},
}
local by_module, title_order = {}, {}
for i, topic in ipairs(TOPICS) do
  title_order[topic[1]] = i
  for module in (topic.modules or ""):gmatch "%S+" do
    by_module[module] = topic[1]
  end
end

-- Returns the name of the module that a chunk belongs to: "cute.arch" for both
-- "=[cute.arch]" and "@lua/cute/arch/init.lua".
local function module_of(chunk)
  local name = chunk:match "^=%[(.*)%]$"
  if name then return (name:gsub("%.init$", "")) end
  local path = chunk:match "(cute/.*)%.lua$"
    or chunk:match ".*(cutelua/.*)%.lua$"
  return path and path:gsub("/init$", ""):gsub("/", ".") or chunk
end

local function topic_of(name, module, banner)
  if module and module:find "^cute%.meta%." and title_order[banner] then
    return banner
  elseif by_module[module] then
    return by_module[module]
  end
  local best, length = nil, 0
  for _, topic in ipairs(TOPICS) do
    local prefix = topic.names
    if prefix and #prefix > length and name:sub(1, #prefix) == prefix then
      best, length = topic[1], #prefix
    end
  end
  return best
end

---------------------------------------------------------------------------
-- lua/cute/meta
---------------------------------------------------------------------------

local META = {"layout", "tile", "tuple", "tensor", "atom", "number", "arch",
  "nvgpu", "object", "gpu"}

-- The comments in lua/cute/meta. meta.names has them by the full name of the
-- function or field, meta.classes by the name of the class.
local meta

local function load_meta()
  if meta then return meta end
  meta = {classes = {}, names = {}}
  for _, file in ipairs(META) do
    local chunk = comments.chunk("cute.meta." .. file)
    -- Maps variables in a file of lua/cute/meta, such as Layout, to the classes
    -- for which they stand.
    local variables = {}
    for _, entry in ipairs(comments.of_chunk(chunk).list) do
      entry.chunk = chunk
      local class = entry.class
      if class then
        meta.classes[class] = entry
        if entry.name then variables[entry.name] = class end
      end
      local name = entry.name and entry.name:gsub("^%w+", variables)
      if name and not class then
        entry.same = entry.same and entry.same:gsub("^%w+", variables)
        meta.names[name] = meta.names[name] or entry
      end
    end
  end
  return meta
end

---------------------------------------------------------------------------
-- Comments of a name
---------------------------------------------------------------------------

--- Returns the function that a signature check wraps, or f itself if there is
-- no check. Also returns the function's debug.getinfo.
---@param f function
---@return function f, table info
function names.inner(f)
  while true do
    local info = debug.getinfo(f, "S")
    if module_of(info.source) ~= "cute.lang.signature" then return f, info end
    local found
    for i = 1, 8 do
      local name, value = debug.getupvalue(f, i)
      if name == "f" and type(value) == "function" then found = value end
    end
    if not found then return f, info end
    f = found
  end
end

-- Returns the comment of a Lua function, its chunk and its line. The comment is
-- above the line of the definition, or belongs to the same name elsewhere in
-- the file.
local function lua_entry(name, f)
  local _, info = names.inner(f)
  if info.what == "C" then return end
  local chunk = comments.of_chunk(info.source)
  local entry = chunk.lines[info.linedefined]
  if not (entry and entry.block) then
    local signature = core.signature(f) or name
    entry = chunk.names[name:match "[%w_]+$"]
      or chunk.names[signature:match "([%w_]+)%f[(\0]"]
  end
  return entry, info.source, entry and entry.line or info.linedefined
end

-- Returns the comment of a function with this full name. If the name is an
-- alias, returns the comment of the function that it stands for.
local function meta_entry(full)
  local entry, same = load_meta().names[full], nil
  local steps = 0
  while entry and not entry.block and entry.same and steps < 4 do
    same, steps = entry.same, steps + 1
    entry = meta.names[same]
  end
  return entry and entry.block and entry, same
end

-- Maps a namespace to the module whose head comment documents it.
local MODULES = {["cute"] = "cute", ["cute.arch"] = "cute.arch",
  ["cute.gpu"] = "cute.gpu", ["cute.jit"] = "cute.jit",
  ["cute.npy"] = "cutelua.text.npy", ["cute.npz"] = "cutelua.text.npz",
  ["cute.safetensors"] = "cutelua.text.safetensors",
  ["cute.gguf"] = "cutelua.text.gguf",
  ["cute.cli"] = "cutelua.program.cli",
  ["cute.bundle"] = "cutelua.bundle",
  ["cute.nvgpu"] = "cute.nvgpu", ["cute.testing"] = "cutelua.bench.testing",
  ["cute.ops.reference"] = "cutelua.bench.reference",
  ["cute.pipeline"] = "cute.pipeline", ["cute.utils"] = "cute.utils",
  ["cute.ops"] = "cute.ops", ["cute.tiles"] = "cute.tiles",
  ["cute.math"] = "cute.math",
  ["cute.nvgpu.cpasync"] = "cute.nvgpu.sm90.cpasync",
  ["cute.nvgpu.warp"] = "cute.nvgpu.sm80.warp",
  ["cute.nvgpu.warpgroup"] = "cute.nvgpu.sm90.warpgroup",
  ["cute.nvgpu.sparse"] = "cute.nvgpu.sm80.sparse",
  ["cute.nvgpu.tcgen05"] = "cute.nvgpu.sm100.tcgen05",
  ["cute.utils.hopper_helpers"] = "cute.hopper",
  ["cute.utils.blackwell_helpers"] = "cute.blackwell"}

-- Returns the comment of a constant, from the file of its namespace's module,
-- and the chunk of that file.
local function constant_entry(name)
  local module, last = name:match "^(.*)%.([%w_]+)$"
  local chunk = MODULES[module] and comments.chunk(MODULES[module])
  local entry = chunk and comments.of_chunk(chunk).names[last]
  return entry, entry and chunk
end

-- Returns the list of the parameter names in a text such as "(a, b?: integer,
-- rest...)". A parameter with dots, such as `rest...`, is listed as "...".
local function parameters(text)
  local list = {}
  for param in (text or ""):gmatch "[^(),]+" do
    local name, dots = param:match "^%s*([%w_]*)(%.*)"
    if name ~= "" or dots ~= "" then
      list[#list + 1] = dots ~= "" and "..." or name
    end
  end
  return list
end

-- Returns the doc of a Lua function with renamed parameters: the names in the
-- definition (`own`) become the names of the public signature.
local function renamed(doc, own, signature)
  if not doc or not own or #doc.params == 0 then return doc end
  local to, known = {}, {}
  local public = parameters(signature:match "%b()$")
  for i, name in ipairs(parameters(own)) do to[name] = public[i] end
  for _, name in ipairs(public) do known[name] = true end
  local copy = setmetatable({params = {}}, {__index = doc})
  for i, p in ipairs(doc.params) do
    copy.params[i] = {name = known[p.name] and p.name or to[p.name] or p.name,
      optional = p.optional, type = p.type, text = p.text}
  end
  return copy
end

local function describe(name, value, own)
  local item = {name = name, value = value,
    kind = type(value) == "function" and "function"
      or type(value) == "table" and "module" or "constant"}
  local entry, same = meta_entry(own or name)
  local other = not entry and core.signature(value)
  if other then entry, same = meta_entry(other:match "^[^(]+") end
  local chunk, line = entry and entry.chunk, entry and entry.line
  if not entry and type(value) == "function" then
    entry, chunk, line = lua_entry(name, value)
  elseif not entry then
    entry, chunk = constant_entry(name)
    line = entry and entry.line
  end
  item.same = same ~= (own or name) and same or nil
  item.doc = entry and entry.doc
  item.chunk, item.line = chunk, line
  if type(value) == "function" then
    item.signature = core.signature(value)
    if item.signature then
      item.doc = renamed(item.doc, entry and entry.params, item.signature)
    end
  end
  item.params = entry and entry.params
  item.topic = topic_of(name, chunk and module_of(chunk), entry
    and entry.topic)
  return item
end

---------------------------------------------------------------------------
-- Modules
---------------------------------------------------------------------------

-- Returns the comment at the head of the file of module `name`.
local function head(name)
  local chunk = MODULES[name] and comments.chunk(MODULES[name])
  local entry = chunk and comments.of_chunk(chunk).list[1]
  return entry and entry.block and entry or nil, chunk
end

-- Returns the sorted names of the fields of a module t, including fields that
-- are loaded on first use.
local function keys(t)
  local set, list = {}, {}
  if rawequal(t, cute) then assert(cute.math) end  -- creates cute.math
  for k in next, t do set[k] = true end
  for _, more in ipairs {sign.lazy(t)} do
    for k in pairs(more) do set[k] = true end
  end
  for k in pairs(set) do
    if type(k) == "string" and not k:find "^__" then list[#list + 1] = k end
  end
  table.sort(list)
  return list
end

local function module_value(name)
  if name == "cute.tiles" then return require "cute.tiles" end
  local v = cute
  for part in name:gsub("^cute%.?", ""):gmatch "[^.]+" do
    local ok, got = pcall(function() return v[part] end)
    if not ok then return nil end
    v = got
  end
  return v
end

--- Returns the item of a module. Its doc is the module's head comment.
---@param name string "cute.arch"
---@return table item
local function module_item(name, value)
  local item = describe(name, value)
  if not item.doc then
    local entry, chunk = head(name)
    item.doc, item.chunk, item.line = entry and entry.doc, chunk, 1
  end
  item.topic = topic_of(name .. ".", nil) or item.topic
  return item
end

-- Fills in the item (a public name) for a table of constants, from the table's
-- class in lua/cute/meta. Returns false for any other item.
local function constants(item)
  local same = load_meta().names[item.name]
  local entry = not MODULES[item.name]
    and (meta.classes[item.name] or same and meta.classes[same.same])
  if not entry then return false end
  item.kind, item.doc, item.chunk = "constants", entry.doc, entry.chunk
  item.line, item.topic = entry.line, topic_of(item.name,
    module_of(entry.chunk), entry.topic)
  return true
end

---------------------------------------------------------------------------
-- Classes
---------------------------------------------------------------------------

-- Classes of userdata: {name of the class, key of its metatable, name of its
-- class in lua/cute/meta}.
local OBJECTS = {
  {"layout", "cute.layout", "cute.Layout"},
  {"tensor", "cute.tensor", "cute.Tensor"},
  {"vector", "cute.vector", "cute.Vector"},
  {"value", "cute.value", "cute.Value"},
  {"dtype", "cute.dtype", "cute.DType"},
  {"swizzle", "cute.constant", "cute.Swizzle"},
  {"basis", "cute.constant", "cute.Basis"},
  {"atom", "cute.atom", "cute.Atom"},
  {"mma_atom", "cute.atom", "cute.MmaAtom"},
  {"copy_atom", "cute.atom", "cute.CopyAtom"},
  {"tiled_mma", "cute.tiled", "cute.TiledMma", "cute.slice"},
  {"tiled_copy", "cute.tiled", "cute.TiledCopy", "cute.slice"},
  {"tma_atom", "cute.tma_atom", "cute.TmaAtom"},
  {"symbol", "cute.symbol", "cute.Symbol"},
  {"buffer", "cute.buffer", "cute.Buffer"},
  {"gpu", "cute.gpu", "cute.Gpu"},
  {"device_buffer", "cute.devbuf", "cute.DeviceBuffer"},
  {"gpu_function", "cute.gpufn", "cute.GpuFunction"},
  {"gpu_launch", "cute.launch", "cute.GpuLaunch"},
  {"blas", "cute.blas", "cute.Blas"},
}
-- Modules that define the classes of lua/cute when they are loaded.
local CLASS_MODULES = [[cute.lang.kernel cute.lang.trace cutelua.ptx.raw
  cute.stream cute.math cute.smemstruct cute.utils cute.pipeline
  cutelua.profile.swizzle cutelua.profile.conflict cutelua.profile.preflight
  cute.layoutenum cute.persistent_schedulers cute.grouped cute.tensormaps
  cute.tmem_allocator
  cute.lang.devices]]

local function class_name(name) return (name:lower():gsub(" ", "_")) end

-- objects: the classes defined in C, which exist before modules are loaded.
-- classes: all classes by name, as {name =, annotation =, tables =, title =}.
local objects, classes

local function load_objects()
  if objects then return objects end
  objects = {}
  for _, row in ipairs(OBJECTS) do
    local class = {name = row[1], annotation = row[3], tables = {}}
    for _, key in ipairs {row[2], row[4]} do
      class.tables[#class.tables + 1] = debug.getregistry()[key]
    end
    objects[row[1]] = class
  end
  return objects
end

local function load_classes()
  if classes then return classes end
  classes = {}
  for name, class in pairs(load_objects()) do classes[name] = class end
  for module in CLASS_MODULES:gmatch "%S+" do require(module) end
  for t in pairs(sign.classes) do
    sign.add_all(t.__name, t)
    local name = class_name(t.__name)
    classes[name] = {name = name, title = t.__name, tables = {t},
      annotation = "cute." .. t.__name:gsub("^%l", string.upper)
        :gsub(" (%l)", string.upper)}
  end
  return classes
end

local function class_of(name)
  return load_objects()[name] or load_classes()[name]
end

-- Returns the sorted names of a class's methods and fields, and the same names
-- as a set.
local function members(class)
  local set, list = {}, {}
  local annotated = load_meta().classes[class.annotation]
  local own = annotated and class.annotation .. ":"
  for _, t in ipairs(class.tables) do
    for k, v in next, t do
      if type(k) == "string" and not k:find "^_" and type(v) == "function"
        and (core.signature(v) or class.title) then
        -- TiledMma and TiledCopy share one metatable, and both kinds of atoms
        -- share another. A shared method is listed only if lua/cute/meta
        -- documents it for this class.
        local shared = class.name:find "^tiled_" or class.name:find "_atom$"
        if not shared or meta.names[own .. k]
          or meta.names[own:gsub(":$", ".") .. k] then
          set[k] = v
        end
      end
    end
  end
  for k in pairs(set) do list[#list + 1] = k end
  table.sort(list)
  return list, set
end

-- Returns the item of the function that creates objects of a class of lua/cute,
-- such as cute.pipeline.PipelineState; nil if there is none.
local function constructor(class)
  for _, module in ipairs {"cute.pipeline.", "cute.utils.", "cute."} do
    local name = class.title and module .. class.title
    local ok, f = pcall(module_value, name or "")
    if ok and type(f) == "function" then return describe(name, f) end
  end
end

local function class_item(class)
  local entry = load_meta().classes[class.annotation]
  local item = {name = class.title or class.name, kind = "class",
    class = class, doc = entry and entry.doc, chunk = entry and entry.chunk,
    line = entry and entry.line, topic = entry and topic_of("", module_of(
      entry.chunk), entry.topic)}
  local maker = not item.doc and constructor(class)
  if maker then
    item.doc, item.chunk, item.line = maker.doc, maker.chunk, maker.line
    item.maker, item.topic = maker.name, maker.topic
  end
  return item
end

local function method_item(class, name, f)
  local item = describe((class.title or class.name) .. ":" .. name, f,
    class.annotation .. ":" .. name)
  if not item.doc then
    local other = describe(item.name, f, class.annotation .. "." .. name)
    if other.doc then item = other end
  end
  local signature = item.signature
  if signature and not signature:find "^[^(]*:" then
    local of = describe(signature:match "^[^(]+", f)
    item.doc, item.chunk, item.line = of.doc, of.chunk, of.line
    item.same, item.method_of_function = of.name, true
  end
  item.kind = "method"
  item.topic = item.topic or class_item(class).topic
  return item
end

local function field_item(class, field)
  return {name = (class.title or class.name) .. "." .. field.name,
    kind = "field", doc = {text = {field.text}, body = {{text = field.text}},
      params = {}, returns = {}, example = {}, fields = {}, type = field.type},
    topic = class_item(class).topic}
end

---------------------------------------------------------------------------
-- All names
---------------------------------------------------------------------------

local all

--- Returns every public name as a list of items {name =, kind = "module",
-- "function", "constant", "constants", "class", "method" or "field", topic =,
-- doc =, signature =, chunk =, line =, same = the original of an alias}.
-- Modules come first, each followed by its members.
---@return table[]
function names.all()
  if all then return all end
  all = {}
  local seen = {}
  local function walk(name, value)
    local item = module_item(name, value)
    if constants(item) then
      all[#all + 1] = item
      return
    end
    all[#all + 1] = item
    seen[value] = true
    for _, k in ipairs(keys(value)) do
      local v, full = value[k], name .. "." .. k
      if type(v) ~= "table" then
        all[#all + 1] = describe(full, v)
      -- The names in cute.math are aliases of functions of cute.
      elseif full == "cute.math" then
        all[#all + 1] = module_item(full, v)
      elseif MODULES[full] and not seen[v] then
        walk(full, v)
      else
        local table_item = describe(full, v)
        constants(table_item)
        all[#all + 1] = table_item
      end
    end
  end
  walk("cute", cute)
  walk("cute.tiles", require "cute.tiles")
  local order = {}
  for name in pairs(load_classes()) do order[#order + 1] = name end
  table.sort(order)
  for _, name in ipairs(order) do
    local class = classes[name]
    all[#all + 1] = class_item(class)
    local list, set = members(class)
    for _, k in ipairs(list) do
      all[#all + 1] = method_item(class, k, set[k])
    end
    local entry = meta.classes[class.annotation]
    for _, field in ipairs(entry and entry.doc.fields or {}) do
      all[#all + 1] = field_item(class, field)
    end
  end
  return all
end

--- Returns the titles of topics, in the order of the reference.
---@return string[]
function names.topics()
  local list = {}
  for i, topic in ipairs(TOPICS) do list[i] = topic[1] end
  return list
end

---------------------------------------------------------------------------
-- One name
---------------------------------------------------------------------------

local function class_member(class, name)
  local list, set = members(class)
  if set[name] then return method_item(class, name, set[name]) end
  local entry = load_meta().classes[class.annotation]
  for _, field in ipairs(entry and entry.doc.fields or {}) do
    if field.name == name then return field_item(class, field) end
  end
  return nil, list
end

-- Finds a public name by its path, with or without "cute." in front:
-- "cute.arch.popc", "arch.popc", "size".
local function by_path(name)
  local full = name == "cute" and name or name:find "^cute%." and name
    or "cute." .. name
  if full:find "^cute%.tiles" then require "cute.tiles" end
  local v, at = cute, "cute"
  if full:find "^cute%.tiles%f[^%w]" then
    v, at = require "cute.tiles", "cute.tiles"
  end
  for part in full:sub(#at + 2):gmatch "[^.]+" do
    if type(v) ~= "table" then return nil end
    local ok, got = pcall(function() return v[part] end)
    if not ok or got == nil then return nil end
    v = got
  end
  if type(v) ~= "table" then return describe(full, v) end
  local item = module_item(full, v)
  constants(item)
  return item
end

--- Returns the item (see names.all) of a name that is written in full; nil if
-- there is no such name. The name of a field or method is preceded by its
-- module or class.
---@param name string "cute.make_layout", "make_layout", "tensor:fill",
-- "tensor.fill", "layout.shape"
---@return table? item
function names.exact(name)
  local owner, member = name:match "^(.+)[.:]([%w_]+)$"
  local item = not name:find ":" and by_path(name)
  if item then return item end
  local class = owner and class_of(class_name(owner))
  if class then return (class_member(class, member)) end
  class = class_of(class_name(name))
  return class and class_item(class)
end

-- Reports whether `name` may mean the item `known`. It may be the end of the
-- item's name, such as "tcgen05.commit", or the name of any object followed by
-- a colon and the item, which is a method.
local function may_mean(known, name)
  local method = name:match "^[%w_]+:([%w_]+)$"
  return known.name:sub(-#name - 1) == "." .. name or method
    and known.kind == "method" and known.name:match "[%w_]+$" == method
end

--- Returns the item (see names.all) of a name, or nil and similar names.
---@param name string as in names.exact, or the last part or parts:
-- "partition_S", "tcgen05.commit", or a method of any object, "pipe:wait", if
-- only one name ends with them
---@return table? item, string[]? near
function names.find(name)
  name = name:match "^%s*(.-)%s*$":gsub("%(%)$", "")
  local item = names.exact(name)
  if item then return item end
  local last = name:match "[%w_]+$"
  local list, meant = {}, {}
  for _, known in ipairs(names.all()) do
    local short = known.name:match "[%w_]+$"
    if short == name then return known end
    if last then list[#list + 1] = known.name end
    if may_mean(known, name) then meant[#meant + 1] = known end
  end
  if #meant == 1 then return meant[1] end
  return nil, names.near(name, list)
end

-- Returns short names that may be similar to `last`, with the full name of
-- each. first: true to return only names with the same first letter, because
-- most typing errors preserve it.
local function candidates(last, list, first)
  local shorts, of = {}, {}
  for _, full in ipairs(list) do
    local short = full:match "[%w_]+$"
    local close = short and not of[short]
      and (not first or short:byte() == last:byte())
      and (math.abs(#short - #last) <= math.max(1, #last // 3)
           or short:sub(1, #last) == last)
    if close and sign.nearest(last, {short}) then
      of[short], shorts[#shorts + 1] = full, short
    end
  end
  return shorts, of
end

--- Returns at most five names whose last part is most similar to that of
-- `name`, the most similar first.
---@param name string
---@param list string[]
---@return string[]
function names.near(name, list)
  local last, near = name:match "[%w_]*$", {}
  local shorts, of = candidates(last, list, true)
  if #shorts == 0 then shorts, of = candidates(last, list, false) end
  for _ = 1, 5 do
    local best = sign.nearest(last, shorts)
    if not best then break end
    near[#near + 1] = of[best]
    for i, short in ipairs(shorts) do
      if short == best then table.remove(shorts, i) break end
    end
  end
  return near
end

-- Maps the type name of a userdata made by C to the title of the class in
-- lua/cute that documents the type.
local TITLES = {["cute.stream"] = "stream", ["cute.event"] = "event",
                ["cute.graph"] = "graph"}

--- Returns the item (see names.all) of a value, which is a function, a module
-- or an object of a class.
---@param value any
---@return table? item
function names.of(value)
  if type(value) == "function" then
    local signature = core.signature(value)
    if not signature then
      local entry, chunk, line = lua_entry("", value)
      return entry and {name = entry.name or "function", kind = "function",
        doc = entry.doc, chunk = chunk, line = line}
    end
    local full = signature:match "^[^(]+"
    return names.find(full:find "[.:]" and full or "cute." .. full)
  elseif type(value) == "table" then
    for name in pairs(MODULES) do
      if rawequal(module_value(name), value) then
        return module_item(name, value)
      end
    end
    local mt = debug.getmetatable(value)
    local title = mt and rawget(mt, "__name")
    local class = title and class_of(class_name(title))
    return class and class_item(class)
  end
  local mt = debug.getmetatable(value)
  local title = mt and mt.__name
  if not title then return nil end
  if TITLES[title] then return class_item(class_of(TITLES[title])) end
  load_objects()
  for _, row in ipairs(OBJECTS) do
    if row[2] == title or row[4] == title then
      local class = objects[row[1]]
      if row[2] == "cute.tiled" then
        local copies = pcall(function() return value.layout_tv_tiled end)
        class = objects[copies and "tiled_copy" or "tiled_mma"]
      end
      return class_item(class)
    end
  end
end

--- Returns the names that a module or class holds, as items.
---@param item table
---@return table[]
function names.inside(item)
  local list = {}
  if item.kind == "class" then
    local order, set = members(item.class)
    for _, k in ipairs(order) do
      list[#list + 1] = method_item(item.class, k, set[k])
    end
    for _, field in ipairs(item.doc and item.doc.fields or {}) do
      list[#list + 1] = field_item(item.class, field)
    end
  elseif item.kind == "module" then
    local prefix = item.name .. "."
    for _, k in ipairs(keys(item.value)) do
      local v = item.value[k]
      local one = type(v) == "table" and module_item(prefix .. k, v)
        or describe(prefix .. k, v)
      if type(v) == "table" then constants(one) end
      list[#list + 1] = one
    end
  end
  return list
end

return names
-- SPDX-License-Identifier: MIT
