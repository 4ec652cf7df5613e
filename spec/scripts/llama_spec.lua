-- Tests scripts/llama.lua. Its logits are compared with those of a decoder in
-- plain Lua, in f64, with the same weights. Also tests safetensors files, valid
-- and invalid.
local cute = require "cute"
local fake = require "spec.gpu.fake"
local npy = require "cute.npy"
local safetensors = require "cutelua.text.safetensors"
local support = require "spec.support"

local N, LAYERS, H, G, D, F, V = 64, 2, 4, 2, 32, 96, 50
local TYPE = {bf16 = "BF16", f32 = "F32", f16 = "F16"}

-- Returns the bytes of a safetensors file with these tensors {name, dtype,
-- shape, buffer}.
local function file_of(list)
  local head, data, at = {}, {}, 0
  for i, t in ipairs(list) do
    local bytes = t[4]:bytes()
    head[i] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}')
      :format(t[1], TYPE[t[2]], table.concat(t[3], ","), at, at + #bytes)
    data[i], at = bytes, at + #bytes
  end
  table.insert(head, 1, '"__metadata__":{"format":"pt"}')
  local text = "{" .. table.concat(head, ",") .. "}"
  return string.pack("<I8", #text) .. text .. table.concat(data)
end

---------------------------------------------------------------------------
-- The decoder in plain Lua
---------------------------------------------------------------------------

-- Returns the elements of the vector W x as a list.
local function times(W, x, columns)
  local y, b = {}, W[4]
  for r = 0, W[3][1] - 1 do
    local sum = 0
    for c = 1, columns do sum = sum + b[r * columns + c - 1] * x[c] end
    y[r + 1] = sum
  end
  return y
end

local function normed(x, w)
  local sum, y = 0, {}
  for _, v in ipairs(x) do sum = sum + v * v end
  local scale = 1 / math.sqrt(sum / #x + 1e-5)
  for i, v in ipairs(x) do y[i] = v * scale * w[4][i - 1] end
  return y
end

local function rotated(x, heads, position)
  local y, half = {}, D // 2
  for h = 0, heads - 1 do
    for i = 1, half do
      local angle = position * 500000 ^ (-2 * (i - 1) / D)
      local c, s = math.cos(angle), math.sin(angle)
      local a, b = x[h * D + i], x[h * D + half + i]
      y[h * D + i], y[h * D + half + i] = a * c - b * s, b * c + a * s
    end
  end
  return y
end

-- Returns the attention of one token's queries over all keys in the cache.
local function attention(q, cache)
  local y = {}
  for h = 0, H - 1 do
    local g, scores, sum = h // (H // G), {}, 0
    for t, kv in ipairs(cache) do
      local s = 0
      for i = 1, D do s = s + q[h * D + i] * kv.k[g * D + i] end
      scores[t] = math.exp(s / math.sqrt(D))
      sum = sum + scores[t]
    end
    for i = 1, D do
      local v = 0
      for t, kv in ipairs(cache) do v = v + scores[t] * kv.v[g * D + i] end
      y[h * D + i] = v / sum
    end
  end
  return y
end

local function add(x, y)
  for i, v in ipairs(y) do x[i] = x[i] + v end
end

-- Returns the logits after the last one of the tokens.
local function decoder(w, tokens)
  local caches, logits = {}, nil
  for i = 1, LAYERS do caches[i] = {} end
  for t, token in ipairs(tokens) do
    local x = {}
    for i = 1, N do x[i] = w["model.embed_tokens"][4][token * N + i - 1] end
    for i = 1, LAYERS do
      local function of(name)
        return w[("model.layers.%d.%s"):format(i - 1, name)]
      end
      local a = normed(x, of "input_layernorm")
      local q = rotated(times(of "self_attn.q_proj", a, N), H, t - 1)
      table.insert(caches[i], {
        k = rotated(times(of "self_attn.k_proj", a, N), G, t - 1),
        v = times(of "self_attn.v_proj", a, N)})
      add(x, times(of "self_attn.o_proj", attention(q, caches[i]), H * D))
      a = normed(x, of "post_attention_layernorm")
      local gate, up = times(of "mlp.gate_proj", a, N),
                       times(of "mlp.up_proj", a, N)
      for k, v in ipairs(gate) do up[k] = up[k] * v / (1 + math.exp(-v)) end
      add(x, times(of "mlp.down_proj", up, F))
    end
    if t == #tokens then
      logits = times(w.lm_head, normed(x, w["model.norm"]), N)
    end
  end
  return logits
end

-- Returns random weights of a tiny model, by name and as a list.
local function weights()
  local by_name, list = {}, {}
  local function make(name, rows, columns)
    local b = cute.buffer(rows and "bf16" or "f32", (rows or 1) * columns)
    b:fill_normal(#list + 1, rows and 0 or 1, rows and columns ^ -0.5 or 0.1)
    local t = {name .. ".weight", tostring(b.dtype),
               rows and {rows, columns} or {columns}, b}
    by_name[name], list[#list + 1] = t, t
  end
  make("model.embed_tokens", V, N)
  for i = 0, LAYERS - 1 do
    local at = ("model.layers.%d."):format(i)
    make(at .. "input_layernorm", nil, N)
    make(at .. "self_attn.q_proj", H * D, N)
    make(at .. "self_attn.k_proj", G * D, N)
    make(at .. "self_attn.v_proj", G * D, N)
    make(at .. "self_attn.o_proj", N, H * D)
    make(at .. "post_attention_layernorm", nil, N)
    make(at .. "mlp.gate_proj", F, N)
    make(at .. "mlp.up_proj", F, N)
    make(at .. "mlp.down_proj", N, F)
  end
  make("model.norm", nil, N)
  make("lm_head", V, N)
  return by_name, list
end

-- Runs the script with weights from two files. Returns the tokens that it
-- prints for each sequence, and the last logits.
local function run(list, words)
  local dir = support.folder()
  local one, two = table.move(list, 1, 8, 1, {}),
                   table.move(list, 9, #list, 1, {})
  support.write(dir .. "/1.safetensors", file_of(one))
  support.write(dir .. "/2.safetensors", file_of(two))
  local out, err, code = support.run {"scripts/llama.lua", "--weights",
    ("%s/1.safetensors,%s/2.safetensors"):format(dir, dir), "--logits",
    dir .. "/logits.npy", table.unpack(words)}
  assert.equal(0, code, out .. err)
  local logits = npy.tensor(assert(npy.read(dir .. "/logits.npy")))
  support.remove(dir)
  local rows = {}
  for line in out:gmatch "\n([ %d]+)" do
    local row = {}
    for n in line:gmatch "%d+" do row[#row + 1] = math.tointeger(n) end
    rows[#rows + 1] = row
  end
  return rows, logits
end

describe("scripts/llama.lua", function()
  local S, STEPS, B = 62, 5, 2  -- 62 + 5 tokens need two pages of the cache
  for _, device in ipairs {"sim #long", "gpu #gpu"} do
    it("has the logits of a decoder in f64 on " .. device, function()
      local by_name, list = weights()
      local rows, logits = run(list, {"--device", device:match "^%S+",
        "--batch", tostring(B), "--prompt", tostring(S), "--tokens",
        tostring(STEPS)})
      assert.equal(B, #rows)
      for b = 0, B - 1 do
        local tokens = {}
        for t = 0, S - 1 do tokens[t + 1] = (b * 31 + t * 7) % V end
        for i = 1, STEPS - 1 do tokens[S + i] = rows[b + 1][i] end
        local want = decoder(by_name, tokens)
        local diff, sum, best = 0, 0, 1
        for i, v in ipairs(want) do
          diff = diff + (logits(b, i - 1) - v) ^ 2
          sum = sum + v * v
          if logits(b, i - 1) > logits(b, best - 1) then best = i end
        end
        local e = math.sqrt(diff / sum)
        assert.is_true(e < 0.02, ("relative error %g"):format(e))
        assert.equal(best - 1, rows[b + 1][STEPS])
      end
    end)
  end

  it("fails if the logits cannot be written #long", function()
    local _, err, code = support.run {"scripts/llama.lua", "--device", "sim",
      "--batch", "1", "--prompt", "2", "--tokens", "1", "--logits", "/dev/full"}
    assert.equal("llama: cannot write /dev/full: No space left on device "
      .. "[io]\n", err)
    assert.equal(1, code)
  end)

  it("says which weight is missing", function()
    local _, list = weights()
    table.remove(list)
    local ok, why = pcall(run, list, {"--device", "sim"})
    assert.is_false(ok)
    assert.is_truthy(tostring(why):find("no file has a tensor lm_head.weight",
                                        1, true))
  end)
end)

-- The fake driver counts allocated memory.
if fake.there then
  describe("scripts/llama.lua on a card of 78 GiB #long", function()
    setup(function() fake.build "-DFAKE_CLUSTERS" end)
    teardown(fake.remove)

    for _, c in ipairs {{64, 2048, 46}, {8, 32768, 72}} do
      it(("has room for %d sequences of %d tokens, 8B"):format(c[1], c[2]),
         function()
        if not require "cute.jit".version() then
          return pending "needs NVRTC"
        end
        local out, err, code = fake.run(([[
          arg = {[0] = "scripts/llama.lua", "--size", "8b", "--batch", "%d",
                 "--prompt", "%d", "--tokens", "3", "--device", "gpu"}
          dofile "scripts/llama.lua"
          print(("peak %%.1f GB"):format(gpu.memory().peak / 1e9))
        ]]):format(c[1], c[2]), nil, {FAKE_MEMORY = tostring(78 << 30)})
        assert.equal(0, code, err)
        local peak = tonumber(out:match "peak (%S+) GB")
        assert.is_true(peak < c[3], tostring(peak))
      end)
    end
  end)
end

describe("safetensors.open", function()
  local dir = support.folder()
  local path = dir .. "/x.safetensors"
  teardown(function() support.remove(dir) end)

  local function header(text, data)
    support.write(path, string.pack("<I8", #text) .. text .. (data or ""))
    return function() return safetensors.open {path} end
  end

  it("reads tensors of any rank, also without elements", function()
    local b = cute.buffer_from("f16", {1, 2, 3, 4, 5, 6})
    support.write(path, file_of {{"a", "f16", {2, 3}, b},
      {"none", "f32", {0, 4}, cute.buffer("f32", 0)},
      {"one", "f32", {}, cute.buffer_from("f32", {7})}})
    local f = safetensors.open {path}
    assert.equal("(2,3):(3,1)", tostring(f:tensor "a".layout))
    assert.equal(6, f:tensor "a"(1, 2))
    assert.equal(0, cute.size(f:tensor "none"))
    assert.equal(7, f:tensor "one"(0))
  end)

  it("maps tensors, and keeps changes out of the file", function()
    -- the sparse file is 64 GiB long
    local n = 1 << 36
    local text = ('{"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}')
      :format(n, n)
    local f = assert(io.open(path, "wb"))
    f:write(string.pack("<I8", #text), text, "\7")
    f:seek("set", 8 + #text + n - 1)
    f:write "\9"
    f:close()
    local t = safetensors.open {path}:tensor "a"
    assert.same({7, 0, 9}, {t(0), t(n // 2), t(n - 1)})
    t[1] = 5
    assert.same({5, 0}, {t(1), safetensors.open {path}:tensor "a"(1)})
    t:close()
    assert.has_error(function() return t(0) end)
    os.remove(path)
  end)

  it("rejects what is no valid file, in one sentence", function()
    local function refuses(said, f)
      local ok, why = pcall(f)
      assert.is_false(ok)
      assert.is_truthy(why:find(said, 1, true), why)
      assert.is_nil(why:find "\n", why)
    end
    support.write(path, "short")
    refuses("it has less than 8 bytes", function()
      return safetensors.open {path}
    end)
    support.write(path, string.pack("<i8", -1) .. "{}")
    refuses("a header of 18446744073709551615 bytes in a file of 10",
            function() return safetensors.open {path} end)
    refuses("not a safetensors file", header "{")
    refuses('its header begins with "3" at byte 8', header "3")
    refuses("a (byte 9) has no shape or data_offsets",
            header '{"a":{"dtype":"F32"}}')
    refuses('the type "C64", which is not supported',
      header '{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}')
    for _, at in ipairs {"[0,4]", "[4,0]", "[-8,0]", "[0,9]", '["a",8]'} do
      refuses("8 bytes inside the file's 8 bytes", header('{"a":{"dtype":"F32",'
        .. '"shape":[2],"data_offsets":' .. at .. '}}', "12345678"))
    end
    refuses("extent 2 is", header('{"a":{"dtype":"F32","shape":'
      .. '[2,4611686018427387904],"data_offsets":[0,8]}}', "12345678"))
    refuses("extent 1 is -1", header('{"a":{"dtype":"F32","shape":[-1],'
      .. '"data_offsets":[0,0]}}'))
    header('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', "1")()
    refuses("tensor a is in two files", function()
      return safetensors.open {path, path}
    end)
    assert.is_false(pcall(safetensors.open, {dir .. "/absent"}))
  end)
end)
-- SPDX-License-Identifier: MIT
