#!/usr/bin/env python3
"""cable.py LATENCY_MS NAME NAME: makes two network devices of these names and joins them by a cable with this
latency in either direction. Says "ready" once they are there, and ends when one of them is removed. Takes root.

Frames are as large as the sender's system lets them be (up to 64 KiB), so that the cable takes little of a processor.
"""

import collections
import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
import time

# linux/if_tun.h
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6 = 1, 2, 4
PR_SET_TIMERSLACK = 29  # linux/prctl.h

FRAME_BYTES = 66 << 10  # of the largest one, with its headers
FRAMES_AT_ONCE = 16  # read from an end before those that are due at the other are written


def make_device(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)
    return device


def read_frames(device):
    for _ in range(FRAMES_AT_ONCE):
        try:
            yield os.read(device, FRAME_BYTES)
        except BlockingIOError:
            return


def write_frame(device, frame):
    try:
        os.write(device, frame)
    except OSError as error:
        if error.errno != errno.EIO:  # as long as the device is down, frames are lost like on a real cable
            raise


def forward(latency_s, ends):
    opposite = {ends[0]: ends[1], ends[1]: ends[0]}
    under_way = collections.deque()  # (when it arrives, where, frame), the first one first
    while True:
        until_next = max(0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select(ends, [], [], until_next)[0]:
            arrival = time.monotonic() + latency_s
            under_way.extend((arrival, opposite[end], frame) for frame in read_frames(end))
        while under_way and under_way[0][0] <= time.monotonic():
            _, end, frame = under_way.popleft()
            write_frame(end, frame)


def join(latency_ms, *names):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # a cable does not wait for a processor
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1000)  # ns; of the usual 50 us a short latency would show much
    ends = [make_device(name) for name in names]
    print("ready", flush=True)
    forward(float(latency_ms) / 1000, ends)


if __name__ == "__main__":
    try:
        join(*sys.argv[1:])
    except OSError as error:
        if error.errno != errno.EBADFD:  # a device has been removed
            sys.exit(f"cable.py: {error}")
