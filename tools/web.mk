# web.mk, called by `make web`: the program as WebAssembly, by emscripten, with
# Lua and zlib from the sources of Debian's packages. Objects, sources and
# emscripten's own library lie in $(BUILD)/wasm, what is served in $(BUILD)/web.
WEB   := $(BUILD)/web
WASM  := $(BUILD)/wasm
override BUILD := $(WASM)
override CC := emcc
override CFLAGS := -O2
STAMP := $(WASM)/source/stamp
LUA_INC = $(wildcard $(WASM)/source/lua5.4-*/src)
Z_INC = $(wildcard $(WASM)/source/zlib-*)
DEFS = -I$(Z_INC)
export NODE_PATH ?= /usr/share/nodejs

web-files: $(WEB)/cutelua.js
include Makefile
# Code that can be anywhere is slower code here.
CSTD := $(filter-out -fPIC -I%,$(CSTD)) -Icore -I$(BUILD)
CSTD += $(addprefix -I,$(LUA_INC)) $(DEFS)

$(STAMP): tools/source.sh
	sh tools/source.sh $(@D) lua5.4 liblua5.4-dev
	sh tools/source.sh $(@D) zlib zlib1g-dev
	cd $(@D)/lua5.4-*/src && \
	  echo '#define DEB_HOST_MULTIARCH "wasm"' >lua5.4-deb-multiarch.h
	touch $@

# Sources are there only now: what they are is asked in a second make.
ifeq ($(LUA_INC),)
$(WEB)/cutelua.js: $(STAMP) FORCE
	@$(MAKE) --no-print-directory -f tools/web.mk \
	  BUILD=$(patsubst %/wasm,%,$(BUILD)) web-files
else
LUA_C := $(filter-out %/lua.c %/luac.c,$(wildcard $(LUA_INC)/*.c))
Z_C   := $(addprefix $(Z_INC)/,adler32.c crc32.c inffast.c inflate.c \
           inftrees.c zutil.c)
THEIRS := $(patsubst %.c,%.o,$(LUA_C) $(Z_C))
$(THEIRS): %.o: %.c
	$(CC) $(CFLAGS) -DLUA_USE_POSIX -DLUA_COMPAT_5_3 -c $< -o $@

WEB_OBJ := $(OBJ) $(filter-out %/linelib.o,$(POBJ)) $(BUILD)/bind/weblib.o \
             $(THEIRS)
$(WEB)/cutelua.js: $(WEB_OBJ) tools/web.mk
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $(WEB_OBJ) -lm -sALLOW_MEMORY_GROWTH=1 \
	  -sMODULARIZE=1 -sEXPORT_NAME=cutelua -sEXIT_RUNTIME=1 \
	  -sEXPORTED_RUNTIME_METHODS=FS
-include $(BUILD)/bind/weblib.d
endif
.PHONY: web-files
