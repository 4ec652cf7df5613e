-- Makes random changes of files from which kernels are launched, and launches
-- them: IR of the CuTe DSL, metadata of Triton, LAUNCH files and captured
-- folders. Usage: `metadata.lua SECONDS [SEED]`. Each error must have a kind in
-- brackets at the end of its first line. The script prints an error without a
-- kind with its seed, and exits with 1. If a process dies, build/metadata.txt
-- has its seed (under ASan: BUILD=build-asan).
package.path = "./?.lua;" .. package.path
local metadata = require "spec.ptx.metadata"
local support = require "spec.support"
local verdicts = require "spec.verdicts"

verdicts.count("metadata", function(seed)
  local folder = support.folder()
  local verdict, why = metadata.run(seed, folder)
  support.remove(folder)
  return verdict, why
end)
-- SPDX-License-Identifier: MIT
