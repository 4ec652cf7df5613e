--- `require "cute.testing"` returns cute.testing, which the package cutelua
-- provides.
local cute = require "cute"

return cute.testing
-- SPDX-License-Identifier: MIT
