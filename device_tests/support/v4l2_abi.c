/* SPDX-License-Identifier: Apache-2.0
 * Prints what the kernel's own header says of sizes, offsets and numbers: one `name value` a line. */
#define _GNU_SOURCE
#include <time.h>

#include <linux/videodev2.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define OFFSET(type, member) printf(#type "." #member " %zu\n", offsetof(struct type, member))
#define NUMBER(name) printf(#name " %lu\n", (unsigned long)(name))

int main(void) {
    SIZE(v4l2_capability);
    OFFSET(v4l2_capability, capabilities);
    OFFSET(v4l2_capability, device_caps);
    SIZE(v4l2_format);
    OFFSET(v4l2_format, fmt.pix.width);
    OFFSET(v4l2_format, fmt.pix.pixelformat);
    OFFSET(v4l2_format, fmt.pix.bytesperline);
    OFFSET(v4l2_format, fmt.pix.colorspace);
    OFFSET(v4l2_format, fmt.pix.quantization);
    SIZE(v4l2_requestbuffers);
    SIZE(v4l2_streamparm);
    OFFSET(v4l2_streamparm, parm.capture.timeperframe.numerator);
    OFFSET(v4l2_streamparm, parm.capture.timeperframe.denominator);
    SIZE(v4l2_buffer);
    OFFSET(v4l2_buffer, bytesused);
    OFFSET(v4l2_buffer, sequence);
    OFFSET(v4l2_buffer, memory);
    OFFSET(v4l2_buffer, m.offset);
    OFFSET(v4l2_buffer, length);
    NUMBER(VIDIOC_QUERYCAP);
    NUMBER(VIDIOC_S_FMT);
    NUMBER(VIDIOC_REQBUFS);
    NUMBER(VIDIOC_QUERYBUF);
    NUMBER(VIDIOC_QBUF);
    NUMBER(VIDIOC_DQBUF);
    NUMBER(VIDIOC_STREAMON);
    NUMBER(VIDIOC_STREAMOFF);
    NUMBER(VIDIOC_S_PARM);
    NUMBER(V4L2_CAP_VIDEO_CAPTURE);
    NUMBER(V4L2_CAP_STREAMING);
    NUMBER(V4L2_CAP_DEVICE_CAPS);
    NUMBER(V4L2_BUF_TYPE_VIDEO_CAPTURE);
    NUMBER(V4L2_MEMORY_MMAP);
    NUMBER(V4L2_COLORSPACE_REC709);
    NUMBER(V4L2_QUANTIZATION_FULL_RANGE);
    NUMBER(V4L2_PIX_FMT_MJPEG);
    NUMBER(V4L2_PIX_FMT_NV12);
    NUMBER(V4L2_PIX_FMT_YUYV);
    NUMBER(V4L2_PIX_FMT_UYVY);
    NUMBER(V4L2_PIX_FMT_NV21);
    NUMBER(V4L2_PIX_FMT_RGB24);
    NUMBER(V4L2_PIX_FMT_BGR24);
    NUMBER(V4L2_PIX_FMT_RGB565);
    NUMBER(V4L2_PIX_FMT_GREY);
    return 0;
}
