--- `require "cute.npy"` returns cute.npy, which the package cutelua provides.
local cute = require "cute"

return cute.npy
-- SPDX-License-Identifier: MIT
