--- The certificate of a bundle, NAME.json: lists the kernels of the bundle, the
-- sources from which they were made, and the checks that were run. `--verify`
-- compares the certificate with the files and with the kernels that the script
-- makes now.
local core = require "cute.core"
local json = require "cutelua.text.json"
local main = require "cutelua.bundle.main"
local output = require "cutelua.text.output"
local report = require "cute.lang.report"
local test_program = require "cutelua.bundle.test_program"
local write = require "cutelua.bundle.write"

local certificate = {}

-- Returns the certificate's description of kernel argument v, for programs that
-- launch the cubin themselves.
local function argument_of(v)
  local out = {kind = v.kind:lower(), tensor = v.of, offset = v.n}
  if v.kind == "CONSTANT" then out = {kind = "constant", bits = v.n}
  elseif v.kind == "NUMBER" then out = {kind = "number", number = v.of}
  elseif v.kind == "EXTENT" or v.kind == "STRIDE" then
    out = {kind = v.kind:lower(), tensor = v.of, mode = v.mode}
  elseif v.kind == "WORK" then out = {kind = "workspace", offset = v.n}
  elseif v.kind == "WORK_MAP" then
    out = {kind = "workspace_map", offset = v.n, map = v.map}
  elseif v.kind == "MAP" then out.map = v.map end
  return out
end

-- Returns the name, without an ending, of the file that --cubin or --ptx writes
-- for a kernel.
local function file_of(b, kernel, at)
  return ("%s.%d.%s.%s"):format(b.name, at, kernel.code.symbol, kernel.arch)
end

-- Returns CUDA C without its comments, which contain the script's lines.
local function plain_source(text)
  return (("\n" .. text):gsub("\n%s*//[^\n]*", ""))
end

-- Returns the SHA-256 of the PTX in `code`. Several functions may use the same
-- kernel, so the hash of each PTX text is kept in `known`.
local known = {}
local function ptx_hash(code)
  known[code.ptx] = known[code.ptx] or core.sha256(code.ptx)
  return known[code.ptx]
end

local function kernels_of(b)
  local list = {}
  for i, k in ipairs(b.kernels) do
    local c = k.code
    list[i] = {name = c.symbol, arch = k.arch, nvrtc = c.nvrtc,
               file = file_of(b, k, i), registers = c.registers,
               smem_dynamic = k.smem,
               source_sha256 = core.sha256(plain_source(c.source)),
               ptx_sha256 = ptx_hash(c),
               cubin_sha256 = core.sha256(c.cubin), cubin_bytes = #c.cubin}
  end
  return list
end

local function step_of(s)
  if s.kernel == -1 then return {kind = "zeros", offset = s.at, bytes = s.n} end
  local values = {}
  for i, v in ipairs(s.values) do values[i] = argument_of(v) end
  return {kind = "launch", kernel = s.code.symbol, grid = s.grid,
          ptx_sha256 = ptx_hash(s.code),
          block = s.block, cluster = s.cluster, smem_dynamic = s.smem,
          pdl = s.pdl or false, cooperative = s.cooperative or false,
          arguments = values}
end

local function functions_of(b)
  local list = {}
  for i, f in ipairs(b.functions) do
    local variants = {}
    for j, v in ipairs(f.variants) do
      local steps, checks, tensors = {}, {}, {}
      for k, s in ipairs(v.steps) do steps[k] = step_of(s) end
      for _, c in ipairs(v.checks or {}) do checks[#checks + 1] = c end
      for k, t in ipairs(v.tensors) do
        tensors[k] = {name = t.name, dtype = t.dtype, extents = t.shape,
          strides = t.stride, extent_divisors = t.shape_div,
          stride_divisors = t.stride_div, align = t.align,
          written = t.written, read = t.read}
      end
      variants[j] = {arch = v.arch, size = v.size, tensors = tensors,
                     workspace = v.work,
                     steps = steps, checks = checks}
    end
    local numbers = {}
    for j, n in ipairs(f.variants[1].numbers) do
      numbers[j] = {name = n.name, dtype = n.dtype}
    end
    list[i] = {name = f.name, numbers = numbers, variants = variants}
  end
  return list
end

-- Returns the texts of a bundle's files, keyed by file ending, and the
-- certificate.
local function made(b)
  local code = write.code(b)
  -- The version is a hash of the header and the C file. The hashed header has
  -- zeros in place of the version.
  local version = core.sha256(write.header(b, ("0"):rep(16)) .. code):sub(1, 16)
  local header = write.header(b, version)
  return {[".h"] = header, [".c"] = code}, {
    form = 1, name = b.name, version = version, archs = b.archs,
    cutelua = core.version, kernels = kernels_of(b),
    functions = functions_of(b),
    files = {{name = b.name .. ".h", sha256 = core.sha256(header)},
             {name = b.name .. ".c", sha256 = core.sha256(code)}}}, version
end

local function size_text(b, files)
  local cubins = 0
  for _, k in ipairs(b.kernels) do cubins = cubins + #k.code.cubin end
  local variants = 0
  for _, f in ipairs(b.functions) do variants = variants + #f.variants end
  return ("%s, %s, %s, %d bytes of cubins; %s.c has %d bytes"):format(
    report.plural(#b.functions, "function"),
    report.plural(variants, "specialisation"),
    report.plural(#b.kernels, "kernel"), cubins, b.name, #files[".c"])
end

-- Returns the results of the checks of all functions as text.
local function check_text(b)
  local count, open = {}, 0
  for _, f in ipairs(b.functions) do
    for _, v in ipairs(f.variants) do
      for _, c in ipairs(v.checks or {}) do
        count[c.verdict] = (count[c.verdict] or 0) + 1
        open = open + #c.open
      end
    end
  end
  if not next(count) then return "no launch was checked" end
  return ("%s ok, %s incomplete"):format(report.plural(count.ok or 0,
    "checked launch", "checked launches"), count.incomplete or 0)
end

--- Writes the files of a bundle; returns an exit code.
function certificate.write(opt, b)
  local files, c, version = made(b)
  for _, ending in ipairs {".h", ".c"} do
    main.put(opt, b.name .. ending, files[ending])
  end
  if opt.test then
    local text, data = test_program.write(b, version)
    main.put(opt, b.name .. "_test.c", text)
    main.put(opt, b.name .. "_test.bin", data)
  end
  for i, k in ipairs(b.kernels) do
    for _, kind in ipairs {"cubin", "ptx"} do
      if opt[kind] then
        main.put(opt, file_of(b, k, i) .. "." .. kind, k.code[kind])
      end
    end
  end
  main.put(opt, b.name .. ".json", json.encode(c), "\n")
  print(("bundle %s: %s"):format(b.name, size_text(b, files)))
  print(("check: %s"):format(check_text(b)))
  return 0
end

---------------------------------------------------------------------------
-- Verification
---------------------------------------------------------------------------

-- The largest size of a file that is read, in bytes.
local LARGEST = 1 << 30

local function read(opt, name)
  local text, why = output.read_plain(opt.folder .. "/" .. name, LARGEST)
  if not text then
    core.fail("io", ("bundle: %s; run `cutelua bundle` without --verify to "
      .. "create this file"):format((why:gsub(" %[io%]$", ""))))
  end
  return text
end

-- Returns {["ARCH NAME HASH"] = kernel} for a certificate's list of kernels.
-- `field` is the name of the field that contains the hash.
local function by_hash(list, field)
  local out = {}
  for _, k in ipairs(list) do
    out[("%s %s %s"):format(k.arch, k.name, k[field])] = k
  end
  return out
end

-- Returns the verdicts of a certificate as a sorted text.
local function verdicts(c)
  local out = {}
  for _, f in ipairs(c.functions) do
    for _, v in ipairs(f.variants) do
      for _, check in ipairs(v.checks) do
        out[#out + 1] = ("%s %s %s %s"):format(f.name, v.arch, check.kernel,
          check.verdict)
      end
    end
  end
  table.sort(out)
  return out
end

-- Compares a certificate's kernels with those that the script makes now.
local function compare_kernels(was, now, say)
  local source, ptx = by_hash(now, "source_sha256"), by_hash(now, "ptx_sha256")
  for _, k in ipairs(was) do
    local key = ("%s %s "):format(k.arch, k.name)
    if not source[key .. k.source_sha256] then
      say(("kernel %s for %s: the script makes another kernel now"):format(
        k.name, k.arch))
    elseif not ptx[key .. k.ptx_sha256] then
      local other = source[key .. k.source_sha256].nvrtc
      say(("kernel %s for %s: its PTX differs; NVRTC was %s and is %s"):format(
        k.name, k.arch, k.nvrtc, other))
    end
  end
  if #was ~= #now then
    say(("the bundle has %d kernels; the script makes %d"):format(#was, #now))
  end
end

-- Returns {[name of a function] = its JSON} for a certificate. The JSON omits
-- the fields that compare_kernels and verdicts compare.
local function function_texts(c)
  local out = {}
  local function plain(v)
    if type(v) ~= "table" then return v end
    local copy = {}
    for k, x in pairs(v) do
      if k ~= "checks" and k ~= "ptx_sha256" then copy[k] = plain(x) end
    end
    return copy
  end
  for _, f in ipairs(c.functions) do out[f.name] = json.encode(plain(f)) end
  return out
end

-- Compares a certificate's functions with those that the script makes now.
local function compare_functions(was, now, say)
  local before, after = function_texts(was), function_texts(now)
  local names = {}
  for name in pairs(before) do names[#names + 1] = name end
  for name in pairs(after) do
    if not before[name] then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    if not after[name] then
      say(("the script makes no function %s now"):format(name))
    elseif not before[name] then
      say(("the script makes a function %s, which the bundle lacks"):format(
        name))
    elseif before[name] ~= after[name] then
      say(("the tensors or launches of function %s differ now"):format(name))
    end
  end
end

-- The fields of a certificate that certificate.verify reads, each with its
-- type. A table with a single element stands for a list of such elements.
local FIELDS = {files = {{name = "string", sha256 = "string"}},
  kernels = {{arch = "string", name = "string", source_sha256 = "string",
              ptx_sha256 = "string"}},
  functions = {{name = "string", variants = {{arch = "string",
    checks = {{kernel = "string", verdict = "string"}}}}}}}

-- Reports whether a value has the type, the elements or the fields of `want`.
local function fits(value, want)
  if type(want) == "string" then return type(value) == want end
  if type(value) ~= "table" then return false end
  for i = 1, want[1] and #value or 0 do
    if not fits(value[i], want[1]) then return false end
  end
  for name, field in pairs(want[1] and {} or want) do
    if not fits(value[name], field) then return false end
  end
  return true
end

--- Verifies the files of a bundle; returns an exit code.
function certificate.verify(opt, b)
  local c, why = json.decode(read(opt, b.name .. ".json"))
  if not c then
    core.fail("io", "bundle: the certificate is not JSON: " .. why)
  elseif type(c) ~= "table" then
    core.fail("io", "bundle: the certificate is not a JSON object")
  end
  local wrong = 0
  local function say(text)
    wrong = wrong + 1
    print(("bundle %s: %s"):format(b.name, text))
  end
  local _, now = made(b)
  if c.form ~= now.form then
    say(("the certificate has form %s; this cutelua reads form %d"):format(
      tostring(c.form), now.form))
    return 1
  elseif not fits(c, FIELDS) then
    say("the certificate lacks fields: write the bundle again")
    return 1
  end
  for _, f in ipairs(c.files) do
    if core.sha256(read(opt, f.name)) ~= f.sha256 then
      say(("%s was changed after it was written"):format(f.name))
    end
  end
  if c.cutelua ~= now.cutelua then
    say(("it was made by cutelua %s; this is %s"):format(c.cutelua,
      now.cutelua))
  end
  compare_kernels(c.kernels, now.kernels, say)
  compare_functions(c, now, say)
  local before, after = verdicts(c), verdicts(now)
  if opt.seconds and table.concat(before, "\n") ~= table.concat(after, "\n")
  then
    say("the verdicts of the check differ from the recorded ones")
  end
  if wrong == 0 then
    print(("bundle %s: verified: %s, %s"):format(b.name,
      report.plural(#c.kernels, "kernel"), check_text(b)))
  end
  return wrong == 0 and 0 or 1
end

return certificate
-- SPDX-License-Identifier: MIT
