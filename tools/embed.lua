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

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(text))
end

-- Compresses texts in a folder that it makes and removes. A process for each
-- text would double the time.
local function packed(texts, dir)
  assert(os.execute(("rm -rf '%s' && mkdir '%s'"):format(dir, dir)))
  for i, text in ipairs(texts) do write(("%s/%d"):format(dir, i), text) end
  assert(os.execute(("gzip -9nr '%s'"):format(dir)), "gzip fails")
  local out = {}
  for i = 1, #texts do out[i] = read(("%s/%d.gz"):format(dir, i)) end
  assert(os.execute(("rm -r '%s'"):format(dir)))
  return out
end

-- Returns a file's bytecode, including debug information. Returns "" for files
-- that are embedded only as text.
local function code(path, text, chunk)
  if not path:find "^lua/cute/" and not path:find "^kernels/" then return "" end
  return string.dump(assert(load(text, chunk, "t")))
end

if arg[2]:find "%.cu$" then
  local out = {}
  for i = 2, #arg do
    for id, text in (read(arg[i]) .. "\n"):gmatch "//: ([%w_]+)\n(.-\n)\n" do
      local name = assert(text:match "__forceinline__ [^\n(]-([%w_]+)%("
        or text:match "#define ([%w_]+)%(", id)
      out[#out + 1] = ("HELPER(%s, \"%s\",\n%s)\n")
        :format(id:upper(), name, c_string(text))
    end
  end
  write(arg[1], table.concat(out))
  return
end

local files, texts, codes = {}, {}, {}
local with_code, dir = arg[2] == "--code", arg[1] .. ".packed"
for i = with_code and 3 or 2, #arg do
  local name, chunk = module_name(arg[i])
  local text = read(arg[i])
  local bytes = with_code and code(arg[i], text, chunk) or ""
  files[#files + 1] = {name = name, chunk = chunk, size = #text,
                       code_size = #bytes}
  texts[#texts + 1], codes[#codes + 1] = text, bytes
end
for i, p in ipairs(packed(texts, dir)) do files[i].packed = p end
if with_code then
  for i, p in ipairs(packed(codes, dir)) do files[i].code = p end
end
table.sort(files, function(a, b) return a.name < b.name end)

local out = {'#include "program/program.h"\n'}
for i, f in ipairs(files) do
  out[#out + 1] = ("static const char packed%d[] =\n%s;\n")
    :format(i, c_bytes(f.packed))
  if f.code_size > 0 then
    out[#out + 1] = ("static const char code%d[] =\n%s;\n")
      :format(i, c_bytes(f.code))
  end
end
out[#out + 1] = "const Embedded embedded_files[] = {"
for i, f in ipairs(files) do
  local c = f.code_size == 0 and "NULL, 0, 0"
    or ("code%d, %d, %d"):format(i, #f.code, f.code_size)
  out[#out + 1] = ('  {"%s", "%s", packed%d, %d, %d, %s},')
    :format(f.name, f.chunk, i, #f.packed, f.size, c)
end
out[#out + 1] = "};\nconst size_t embedded_count =\n" ..
  "  sizeof embedded_files / sizeof *embedded_files;\n"

write(arg[1], table.concat(out, "\n"))
-- SPDX-License-Identifier: MIT
