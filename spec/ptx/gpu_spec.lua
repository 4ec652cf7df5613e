-- Tests PTX on a machine with a GPU. Launches must run on the simulator unless
-- the launch names the GPU, which must raise an error. `check` must not compare
-- results with the GPU.
local fake = require "spec.gpu.fake"

local CODE = [==[
local cute = require "cute"
local k = cute.ptx [[
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y) {
.reg .b64 %rd<2>;
ld.param.u64 %rd0, [y];
cvta.to.global.u64 %rd1, %rd0;
st.global.u32 [%rd1], 7;
ret;
}
]]:kernel "k"
local y = cute.zeros({1}, cute.i32)
local launch = {grid = 1, block = 1, device = DEVICE}
]==]

describe("PTX where there is a GPU", function()
  if not fake.there then
    pending "needs a C compiler"
    return
  end
  setup(fake.build)
  teardown(fake.remove)

  local function run(device, code)
    return fake.run(CODE:gsub("DEVICE", device) .. code)
  end

  it("runs on the simulator by default", function()
    local out, err = run("nil", [[k(y):launch(launch) print(y[0])]])
    assert.equal("7\n", out, err)
  end)

  it("is rejected on the GPU", function()
    for _, device in ipairs {'"gpu"', '"gpu:0"'} do
      local out = run(device, [[print(message(function()
        k(y):launch(launch)
      end)) print(y[0])]])
      assert.matches("^kernel k is PTX, which runs on the simulator; the "
        .. "launch is on .-\n  launch it with device = \"sim\"; on a GPU, load "
        .. "the PTX itself\n", out:gsub(" %[bad%-launch%]", ""))
      assert.matches("\n0\n$", out)
    end
  end)

  it("is checked without a comparison with the GPU", function()
    local out, err = run("nil", [[
      local v = k(y):check(launch)
      print(v.verdict, v.gpu, v.not_compared)
      print(message(function()
        k(y):check {grid = 1, block = 1, gpu = true}
      end))]])
    assert.equal("ok\tnil\tPTX runs on the simulator only\ncall:check: PTX "
      .. "runs on the simulator only [bad-launch]\n", out, err)
  end)
end)
-- SPDX-License-Identifier: MIT
