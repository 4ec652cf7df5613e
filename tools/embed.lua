-- embed.lua OUT [--code] FILE...: writes C that contains the files, packed by
-- gzip (see program.h). lua/cute/x.lua becomes the module cute.x, and
-- kernels/y.lua the module kernels.y. docs/z.md keeps its path. --code: also
-- contains the bytecode of the files of lua/cute/ and kernels/, which nearly
-- every script loads. Lua loads bytecode 15 times as fast as text.
--
-- embed.lua OUT core/emit/prelude.cu ...: writes the blocks of these files,
-- each as a line HELPER(ID, "function", "text").

local function module_name(path)
  if path:find "%.md$" then return path, "=[" .. path .. "]" end
  local name = path:gsub("^lua/", ""):gsub("%.lua$", ""):gsub("/", ".")
  return (name:gsub("^(.+)%.init$", "%1")),
    "=[" .. name .. "]"
end

local function c_string(text)
  local escapes = {["\n"] = "\\n", ["\t"] = "\\t", ['"'] = '\\"',
    ["\\"] = "\\\\", ["?"] = "\\?"}
  local lines = {}
  for line in text:gmatch "[^\n]*\n?" do
    if line ~= "" then
      lines[#lines + 1] = '  "' .. line:gsub('[%c"\\?\128-\255]', function(c)
        return escapes[c] or ("\\%03o"):format(c:byte())
      end) .. '"'
    end
  end
  return #lines > 0 and table.concat(lines, "\n") or '  ""'
end

-- Returns bytes as C string literals with octal escapes. An initializer list
-- would need a cast for each byte.
local function c_bytes(bytes)
  local lines = {}
  for i = 1, #bytes, 19 do
    lines[#lines + 1] = '  "' .. bytes:sub(i, i + 18):gsub(".", function(c)
      return ("\\%03o"):format(c:byte())
    end) .. '"'
  end
  return table.concat(lines, "\n")
end

local function packed(path)
  local p <close> = assert(io.popen("gzip -9nc '" .. path .. "'", "r"))
  local bytes = p:read "a"
  assert(p:close(), "gzip fails")
  return bytes
end

-- Returns the size of a file's bytecode (including debug information), and the
-- compressed bytecode. Returns 0 and "" for files that are embedded only as
-- text.
local function code(path, chunk)
  if not path:find "^lua/cute/" and not path:find "^kernels/" then
    return 0, ""
  end
  local f <close> = assert(io.open(path, "rb"))
  local bytes = string.dump(assert(load(f:read "a", chunk, "t")))
  local name = arg[1] .. ".code"
  local out <close> = assert(io.open(name, "wb"))
  assert(out:write(bytes))
  out:close()
  local p = packed(name)
  os.remove(name)
  return #bytes, p
end

local function write(text)
  local f <close> = assert(io.open(arg[1], "wb"))
  assert(f:write(text))
end

if arg[2]:find "%.cu$" then
  local out = {}
  for i = 2, #arg do
    local f <close> = assert(io.open(arg[i], "rb"))
    for id, text in (f:read "a" .. "\n"):gmatch "//: ([%w_]+)\n(.-\n)\n" do
      local name = assert(text:match "__forceinline__ [^\n(]-([%w_]+)%("
        or text:match "#define ([%w_]+)%(", id)
      out[#out + 1] = ("HELPER(%s, \"%s\",\n%s)\n")
        :format(id:upper(), name, c_string(text))
    end
  end
  write(table.concat(out))
  return
end

local files, with_code = {}, arg[2] == "--code"
for i = with_code and 3 or 2, #arg do
  local name, chunk = module_name(arg[i])
  local f <close> = assert(io.open(arg[i], "rb"))
  local file = {name = name, chunk = chunk, size = f:seek "end",
    packed = packed(arg[i]), code_size = 0, code = ""}
  if with_code then file.code_size, file.code = code(arg[i], chunk) end
  files[#files + 1] = file
end
table.sort(files, function(a, b) return a.name < b.name end)

local out = {'#include "program/program.h"\n'}
for i, f in ipairs(files) do
  out[#out + 1] = ("static const char packed%d[] =\n%s;\n")
    :format(i, c_bytes(f.packed))
  if f.code ~= "" then
    out[#out + 1] = ("static const char code%d[] =\n%s;\n")
      :format(i, c_bytes(f.code))
  end
end
out[#out + 1] = "const Embedded embedded_files[] = {"
for i, f in ipairs(files) do
  local c = f.code ~= "" and ("code%d, %d, %d"):format(i, #f.code, f.code_size)
    or "NULL, 0, 0"
  out[#out + 1] = ('  {"%s", "%s", packed%d, %d, %d, %s},')
    :format(f.name, f.chunk, i, #f.packed, f.size, c)
end
out[#out + 1] = "};\nconst size_t embedded_count =\n" ..
  "  sizeof embedded_files / sizeof *embedded_files;\n"

write(table.concat(out, "\n"))
-- SPDX-License-Identifier: MIT
