/* Frames: 4-byte big-endian length, then fields joined by NUL. */
#define _GNU_SOURCE
#include "launcher.h"

#include <stdlib.h>
#include <string.h>

int buf_add(struct buf *b, const void *data, size_t len)
{
	if (b->len + len > b->cap) {
		size_t cap = b->cap ? b->cap : 4096;
		while (cap < b->len + len)
			cap *= 2;
		unsigned char *grown = realloc(b->data, cap);
		if (!grown)
			return -1;
		b->data = grown;
		b->cap = cap;
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

void buf_drop(struct buf *b, size_t len)
{
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
}

void buf_free(struct buf *b)
{
	free(b->data);
	memset(b, 0, sizeof *b);
}

int frame_put(struct buf *b, int count, const char *const *fields)
{
	size_t len = (size_t)count - 1;
	for (int i = 0; i < count; i++)
		len += strlen(fields[i]);
	if (len > FRAME_MAX)
		return -1;
	unsigned char head[4] = {(unsigned char)(len >> 24), (unsigned char)(len >> 16), (unsigned char)(len >> 8),
				 (unsigned char)len};
	if (buf_add(b, head, 4))
		return -1;
	for (int i = 0; i < count; i++)
		if (buf_add(b, fields[i], strlen(fields[i]) + (i + 1 < count)))
			return -1;
	return 0;
}

int frame_take(struct buf *b, struct frame *f)
{
	if (b->len < 4)
		return 0;
	size_t len = (size_t)b->data[0] << 24 | (size_t)b->data[1] << 16 | (size_t)b->data[2] << 8 | b->data[3];
	if (len > FRAME_MAX)
		return -1;
	if (b->len < 4 + len)
		return 0;
	f->count = 1;
	for (size_t i = 0; i < len; i++)
		f->count += b->data[4 + i] == 0;
	f->text = malloc(len + 1);
	f->field = calloc((size_t)f->count + 1, sizeof *f->field);
	if (!f->text || !f->field) {
		frame_free(f);
		return -1;
	}
	memcpy(f->text, b->data + 4, len);
	f->text[len] = 0;
	char *at = f->text;
	for (int i = 0; i < f->count; i++, at += strlen(at) + 1)
		f->field[i] = at;
	buf_drop(b, 4 + len);
	return 1;
}

void frame_free(struct frame *f)
{
	free(f->text);
	free(f->field);
	f->text = NULL;
	f->field = NULL;
}
