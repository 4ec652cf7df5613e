--- Helpers for specs of kernels. They make tensors and small kernels, compile
-- them, and run tables of kernels both on the simulator and on a GPU.
local assert = require "luassert"
local core = require "cute.core"
local cute = require "cute"
local cudahost = require "spec.cudahost"
local support = require "spec.support"

local kernels = {}

---------------------------------------------------------------------------
-- Tensors
---------------------------------------------------------------------------

--- Returns a row-major host tensor with this shape; element i in memory is
-- f(i).
---@param shape integer[]
---@param dtype DType
---@param f? fun(i: integer): number without it, zeros
function kernels.tensor(shape, dtype, f)
  local t = cute.zeros(shape, dtype)
  if f then
    local n = cute.size(t)
    local flat = cute.make_tensor(t.iterator, cute.make_layout {n})
    for i = 0, n - 1 do flat[i] = f(i) end
  end
  return t
end

--- Returns a view of a buffer as a row-major matrix.
function kernels.row_major(buffer, rows, cols)
  return cute.make_tensor(buffer,
                          cute.make_layout({rows, cols}, cute.LayoutRight))
end

---------------------------------------------------------------------------
-- Small kernels
---------------------------------------------------------------------------

--- Returns the kernel D = A * B + C of one tile.
function kernels.tile(mma)
  return cute.kernel("tile", function(mA, mB, mC, mD)
    local thr = mma:get_slice(cute.arch.thread_idx())
    local rA, rB = thr:partition_fragment_A(mA), thr:partition_fragment_B(mB)
    local rC, rD = thr:partition_fragment_C(mC), thr:partition_fragment_C(mD)
    cute.autovec_copy(thr:partition_A(mA), rA)
    cute.autovec_copy(thr:partition_B(mB), rB)
    cute.autovec_copy(thr:partition_C(mC), rC)
    cute.gemm(mma, rD, rA, rB, rC)
    cute.autovec_copy(rD, thr:partition_C(mD))
  end)
end

--- Returns the n elements of i32 that the kernel f(out, ...) writes, run with
-- one thread.
---@param n integer
---@param f function
---@return integer[]
function kernels.run(n, f, ...)
  local out = cute.zeros({n}, cute.i32)
  cute.kernel("k", f)(out, ...):launch {
    grid = 1, block = 1, device = "sim:sm_90a"}
  local t = {}
  for i = 0, n - 1 do t[i + 1] = out[i] end
  return t
end

---------------------------------------------------------------------------
-- Compilation
---------------------------------------------------------------------------

--- Returns NVRTC's output for a program and an architecture, or nil without
-- NVRTC. A compilation error fails the test.
function kernels.compiled(program, arch)
  local out, why = program:compile(arch)
  if not out and why:find("[no-nvrtc]", 1, true) then return nil end
  assert.is_truthy(out, ("%s: %s"):format(arch, why))
  return out
end

--- Compiles the first kernel of a lesson for all of these architectures;
-- returns false without NVRTC.
---@param spec table a lesson, as cutelua.bench.harness takes it
---@param size integer[]
---@param dtype string
---@param archs string[]
---@return boolean
function kernels.lesson_compiles(spec, size, dtype, archs)
  local harness = require "cutelua.bench.harness"
  local p = harness.problem(spec, size, {dtype = dtype, bare = true})
  local l = harness.launches(p, p.spec.make)[1]
  local call = l.kernel(table.unpack(l.args, 1, l.args.n))
  return kernels.compiles(call:trace {block = l.block}, archs)
end

--- Compiles the program for all of these architectures; returns false without
-- NVRTC.
---@return boolean
function kernels.compiles(program, archs)
  for _, arch in ipairs(archs) do
    if not kernels.compiled(program, arch) then return false end
  end
  return true
end

--- Opcode of FADD2, Blackwell's addition of two f32, in the counts of
-- `kernels.opcodes`. nvdisasm 13.5 prints this name.
kernels.FADD2 = 0x4b

--- Counts the instructions in the machine code of a cubin by opcode. An
-- instruction has 16 bytes, and its low 9 bits are the opcode.
---@param cubin string
---@return table<integer, integer>
function kernels.opcodes(cubin)
  local sections, n = ("<I8"):unpack(cubin, 41), ("<I2"):unpack(cubin, 61)
  local counts = {}
  for i = 0, n - 1 do
    local _, kind, flags, _, offset, size =
      ("<I4I4I8I8I8I8"):unpack(cubin, sections + 64 * i + 1)
    local code = kind == 1 and flags & 4 > 0
    for at = offset + 1, code and offset + size or 0, 16 do
      local op = ("<I2"):unpack(cubin, at) & 0x1ff
      counts[op] = (counts[op] or 0) + 1
    end
  end
  return counts
end

--- Compiles a kernel k, given as emitted text, for the host (spec/cudahost.h),
-- and runs it. Returns its output, or nil without a C++ compiler.
---@param text string
---@param flags string[] -DN=..., -DTHREADS=... and so on
---@param input string bytes
---@return string? bytes
function kernels.on_host(text, flags, input)
  local compiler = cudahost.compiler()
  if not compiler then return nil end
  local dir <close> = setmetatable({path = support.folder()}, {
    __close = function(d) support.remove(d.path) end})
  -- Replaces the prelude's only statement of inline PTX, an fma, by plain C.
  support.write(dir.path .. "/k.cu",
    (text:gsub('asm%("fma%.rn%.f32 [^\n]*', "(d) = fmaf(a, b, d)")))
  local words = {compiler, "-O1", "-w", "-ffp-contract=off", "-fwrapv",
    "-DKERNEL=k", "-include", "spec/cudahost.h", "-x", "c++",
    dir.path .. "/k.cu", "-o", dir.path .. "/k", "-lm"}
  table.move(flags, 1, #flags, #words + 1, words)
  local out, err, code = support.exec(words)
  assert.equal("", err .. out, text)
  assert.equal(0, code)
  out, err, code = support.exec({dir.path .. "/k"}, {stdin = input})
  assert.equal("", err)
  assert.equal(0, code)
  return out
end

---------------------------------------------------------------------------
-- Tables of kernels
---------------------------------------------------------------------------

---@class KernelCase
---@field [1] string its title
---@field make fun(): any[] its tensors
---@field kernel function
---@field grid? integer 1
---@field block? integer 32
---@field sm? integer the lowest architecture that supports it
---@field bound? number the largest allowed relative difference of values; all
-- NaNs then count as equal. Without it, results must be equal bit for bit

local ARCH = "sm_90a"

-- Runs a case on copies of its tensors, which are made once. Returns the
-- buffers afterwards, the launch's results and the call.
local function run(c, device)
  c.tensors = c.tensors or c.make()
  local args, buffers = {}, {}
  for i, t in ipairs(c.tensors) do
    local from = core.param_memory(t)
    buffers[i] = core.buffer(from.dtype, #from):set_bytes(from:bytes())
    args[i] = cute.make_tensor(buffers[i], t.layout)
  end
  local call = cute.kernel("k", c.kernel)(table.unpack(args))
  local out = assert(call:launch {grid = c.grid or 1, block = c.block or 32,
                                  device = device})
  return buffers, out, call
end

local function equal(a, b, i, bound)
  if not bound then return a:bytes(i, 1) == b:bytes(i, 1) end
  local x, y = a[i], b[i]
  return support.same(x, y) or
    bound > 0 and math.abs(x - y) <= bound * math.max(math.abs(x), 1e-3)
end

-- Describes some of the elements in which b differs from a; returns nil if
-- there are none.
local function differences(a, b, bound)
  if a:bytes() == b:bytes() then return nil end
  local out, count = {}, 0
  local format = "<I" .. #a:bytes(0, 1)
  for i = 0, #a - 1 do
    if not equal(a, b, i, bound) then
      count = count + 1
      if count <= 4 then
        out[count] = ("element %d: simulator %s (%x), GPU %s (%x)"):format(i,
          a[i], format:unpack(a:bytes(i, 1)), b[i],
          format:unpack(b:bytes(i, 1)))
      end
    end
  end
  return count > 0 and
    ("%d of %d differ: %s"):format(count, #a, table.concat(out, "; ")) or nil
end

--- Runs a case on the simulator, where it must cause no report. Compiles it for
-- each of the architectures that support it; returns false without NVRTC.
---@param c KernelCase
---@param archs string[]
---@return boolean
function kernels.check(c, archs)
  local _, report, call = run(c, "sim:" .. ARCH)
  assert.is_true(report.ok, tostring(report))
  local targets = {}
  for _, arch in ipairs(archs) do
    if tonumber(arch:match "%d+") >= (c.sm or 0) then
      targets[#targets + 1] = arch
    end
  end
  return kernels.compiles(call:trace {block = c.block or 32}, targets)
end

--- Checks that a case gives the same tensors on a GPU as on the simulator.
---@param c KernelCase
function kernels.agree(c)
  local want, got = run(c, "sim:" .. ARCH), run(c, "gpu")
  for i = 1, #want do
    local wrong = differences(want[i], got[i], c.bound)
    assert.is_nil(wrong, ("tensor %d, %s"):format(i, tostring(wrong)))
  end
end

--- Returns the module kernels/NAME after a change of its text, or of the text
-- of another file in kernels/. f: {the text to replace, its replacement, nth =
-- the occurrence to replace, file = the name of the other file}.
function kernels.changed(name, f)
  local file, kept = f.file or name, {}
  for module, m in pairs(package.loaded) do
    if module:find "^kernels%." then
      kept[module], package.loaded[module] = m, nil
    end
  end
  local path = "kernels/" .. file .. ".lua"
  package.loaded["kernels." .. file] = assert(load(support.change(
    support.read(path), f[1], f.nth or 1, f[2]), "@" .. path))()
  local made = require("kernels." .. name)
  for module in pairs(package.loaded) do
    if module:find "^kernels%." then package.loaded[module] = kept[module] end
  end
  return made
end

return kernels
-- SPDX-License-Identifier: MIT
