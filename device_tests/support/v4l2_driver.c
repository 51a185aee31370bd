/* SPDX-License-Identifier: Apache-2.0
 * A capture driver in the process itself: preloaded, it answers video requests on an ordinary file, whose pages are the
 * buffers. It follows the kernel's rules for the order of calls and refuses what breaks them.
 *
 * It offers YUYV 16 x 8 with rows of 48 bytes, 25 frames a second. Two frames are ready each time; the brightness of frame
 * n is 16 + n. After frame DRIVER_FRAMES it is unplugged. DRIVER_KIND=radio takes no pictures; DRIVER_FORMAT=MJPG gives
 * the bytes of DRIVER_PICTURE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 16, HEIGHT = 8, STRIDE = 48, BUFFERS = 4, READY = 2, BUFFER_BYTES = 4096 };

static int queued[BUFFERS], order[BUFFERS], waiting, count, streaming, ready = READY;
static unsigned sequence;

static int fail(int error) {
    errno = error;
    return -1;
}

static unsigned offered(void) { return getenv("DRIVER_FORMAT") ? V4L2_PIX_FMT_MJPEG : V4L2_PIX_FMT_YUYV; }

static int capability(struct v4l2_capability *c) {
    memset(c, 0, sizeof *c);
    c->capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    c->device_caps = getenv("DRIVER_KIND") ? V4L2_CAP_RADIO : V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    return 0;
}

static int set_format(struct v4l2_format *f) {
    if (f->type != V4L2_BUF_TYPE_VIDEO_CAPTURE)
        return fail(EINVAL);
    if (streaming)
        return fail(EBUSY);
    f->fmt.pix.pixelformat = offered();
    f->fmt.pix.width = WIDTH;
    f->fmt.pix.height = HEIGHT;
    f->fmt.pix.bytesperline = getenv("DRIVER_FORMAT") ? 0 : STRIDE;
    f->fmt.pix.sizeimage = STRIDE * HEIGHT;
    f->fmt.pix.colorspace = V4L2_COLORSPACE_REC709;
    f->fmt.pix.quantization = V4L2_QUANTIZATION_FULL_RANGE;
    return 0;
}

static int set_rate(struct v4l2_streamparm *p) {
    if (p->type != V4L2_BUF_TYPE_VIDEO_CAPTURE)
        return fail(EINVAL);
    p->parm.capture.timeperframe.numerator = 1;
    p->parm.capture.timeperframe.denominator = 25;
    return 0;
}

static int request(struct v4l2_requestbuffers *r) {
    if (r->type != V4L2_BUF_TYPE_VIDEO_CAPTURE || r->memory != V4L2_MEMORY_MMAP)
        return fail(EINVAL);
    count = r->count < BUFFERS ? (int)r->count : BUFFERS;
    r->count = (unsigned)count;
    return 0;
}

static int checked(const struct v4l2_buffer *b) {
    return b->type == V4L2_BUF_TYPE_VIDEO_CAPTURE && b->memory == V4L2_MEMORY_MMAP &&
           b->index < (unsigned)count;
}

static int query(struct v4l2_buffer *b) {
    if (!checked(b))
        return fail(EINVAL);
    b->length = BUFFER_BYTES;
    b->m.offset = b->index * BUFFER_BYTES;
    return 0;
}

static int queue(struct v4l2_buffer *b) {
    if (!checked(b) || queued[b->index])
        return fail(EINVAL);
    queued[b->index] = 1;
    order[waiting++] = (int)b->index;
    return 0;
}

static unsigned fill(int fd, unsigned index) {
    unsigned char bytes[BUFFER_BYTES];
    size_t used = STRIDE * HEIGHT;
    const char *picture = getenv("DRIVER_PICTURE");
    memset(bytes, 0, sizeof bytes);
    if (picture) {
        used = strlen(picture) / 2;
        for (size_t i = 0; i < used; i++) {
            char pair[3] = {picture[2 * i], picture[2 * i + 1], 0};
            bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
        }
    }
    for (int y = 0; !picture && y < HEIGHT; y++) {
        for (int x = 0; x < 2 * WIDTH; x++)
            bytes[y * STRIDE + x] = (unsigned char)(x % 2 ? 128 : 16 + sequence);
    }
    if (pwrite(fd, bytes, sizeof bytes, (off_t)index * BUFFER_BYTES) != (ssize_t)sizeof bytes)
        abort();
    return (unsigned)used;
}

static int dequeue(int fd, struct v4l2_buffer *b) {
    const char *frames = getenv("DRIVER_FRAMES");
    if (!streaming || b->type != V4L2_BUF_TYPE_VIDEO_CAPTURE || b->memory != V4L2_MEMORY_MMAP)
        return fail(EINVAL);
    if (frames && sequence >= (unsigned)atoi(frames))
        return fail(ENODEV);
    if (ready == 0 || waiting == 0) {
        ready = READY;
        return fail(EAGAIN);
    }
    ready--;
    b->index = (unsigned)order[0];
    memmove(order, order + 1, sizeof order[0] * (size_t)--waiting);
    queued[b->index] = 0;
    b->bytesused = fill(fd, b->index);
    b->sequence = sequence++;
    return 0;
}

static int stream(const int *type, int on) {
    if (*type != V4L2_BUF_TYPE_VIDEO_CAPTURE || (on && waiting == 0))
        return fail(EINVAL);
    streaming = on;
    return 0;
}

int ioctl(int fd, unsigned long number, ...) {
    va_list rest;
    va_start(rest, number);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    switch ((unsigned)number) {
    case VIDIOC_QUERYCAP:
        return capability(argument);
    case VIDIOC_S_FMT:
        return set_format(argument);
    case VIDIOC_S_PARM:
        return set_rate(argument);
    case VIDIOC_REQBUFS:
        return request(argument);
    case VIDIOC_QUERYBUF:
        return query(argument);
    case VIDIOC_QBUF:
        return queue(argument);
    case VIDIOC_DQBUF:
        return dequeue(fd, argument);
    case VIDIOC_STREAMON:
        return stream(argument, 1);
    case VIDIOC_STREAMOFF:
        return stream(argument, 0);
    default:
        break;
    }
    int (*next)(int, unsigned long, ...);
    *(void **)&next = dlsym(RTLD_NEXT, "ioctl");
    return next(fd, number, argument);
}
