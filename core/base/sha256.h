// SHA-256, which identifies the contents of files.
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>

// Stores the SHA-256 of n bytes as 64 hexadecimal digits and a zero.
void sha256_hex(const void *p, size_t n, char out[65]);

#endif
// SPDX-License-Identifier: MIT
