# cutelua: `make demo` and `make test` do all the set-up; see README.md.
CC      ?= cc
BUILD   ?= build
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes
LUA_INC ?= /usr/include/lua5.4
CSTD    := -std=c11 -fvisibility=hidden -fPIC -I$(LUA_INC)
LIBS    := -lm -ldl -lpthread

CORE := $(filter-out core/main.c,$(wildcard core/*.c))
OBJ  := $(CORE:core/%.c=$(BUILD)/%.o)

all: $(BUILD)/cute/core.so

$(BUILD)/%.o: core/%.c
	@mkdir -p $(BUILD)
	$(CC) $(CSTD) $(CFLAGS) $(WARN) -MMD -MP -c $< -o $@

$(BUILD)/cute/core.so: $(OBJ)
	@mkdir -p $(BUILD)/cute
	$(CC) -shared $(CFLAGS) -o $@ $^ $(LIBS)

-include $(OBJ:.o=.d)
