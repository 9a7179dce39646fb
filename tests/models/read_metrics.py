"""Reads what --metrics writes, without any code of the framework or of TensorBoard: TFRecords with
their checksums, the protocol buffers in them, JSON lines.

    values = read_metrics.read(directory)   # {step: {name: value}}; fails if the two files differ
"""

import json
import math
import pathlib
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked_crc(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """The records of a file, without an unfinished one at its end."""
    at = 0
    while at + 12 <= len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert length_crc == masked_crc(data[at:at + 8]), f"length at byte {at}"
        if at + 16 + length > len(data):
            return
        record = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked_crc(record), f"record at byte {at}"
        yield record
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(message):
    """(number, value) of a protocol buffer's fields; fixed-size values as bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                assert kind == 2, kind
                size, at = varint(message, at)
            value, at = message[at:at + size], at + size
            assert len(value) == size
        yield key >> 3, value


def read_events(directory):
    """{step: {name: value}} as TensorBoard shows it: the start of a run drops its steps in files before."""
    shown = {}
    for path in sorted(pathlib.Path(directory).glob("events.out.tfevents.*")):
        for number, record in enumerate(records(path.read_bytes())):
            event = dict(fields(record))
            assert 1.7e9 < struct.unpack("<d", event[1])[0] < 1e10, event
            step = event.get(2, 0)
            if number == 0:
                assert event[3] == b"brain.Event:2", event
            elif 7 in event:  # a session's log
                assert dict(fields(event[7])) == {1: 1}, event
                shown = {other: values for other, values in shown.items() if other < step}
            else:
                for key, value in fields(event[5]):
                    assert key == 1, key
                    scalar = dict(fields(value))
                    name = scalar[1].decode()
                    values = shown.setdefault(step, {})
                    assert name not in values, (step, name)
                    values[name] = struct.unpack("<f", scalar[2])[0] if 2 in scalar else histogram(scalar[5])
    return shown


def doubles(data):
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def histogram(message):
    found = dict(fields(message))
    numbers = {name: doubles(found[number])[0] for number, name in
               [(1, "min"), (2, "max"), (3, "num"), (4, "sum"), (5, "sum_squares")]}
    limits, counts = doubles(found[6]), doubles(found[7])
    assert len(limits) == len(counts) and limits == sorted(limits), message
    assert sum(counts) == numbers["num"], message
    numbers["buckets"] = list(zip(limits, counts))
    return numbers


def read_lines(directory):
    values, last_step = {}, 0
    for line in (pathlib.Path(directory) / "metrics.jsonl").read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        scalars = json.loads(line)
        step = scalars.pop("step")
        assert step >= last_step, line
        last_step = step
        assert scalars.pop("time") > 1.7e9, line
        for name, value in scalars.items():
            assert name not in values.setdefault(step, {}), line
            values[step][name] = math.nan if value is None else value
    return values


def same(a, b):
    return math.isnan(a) and math.isnan(b) or math.isclose(a, b, rel_tol=1e-6)


def read_histograms(directory):
    """{step: {name: histogram}}"""
    found = {step: {name: value for name, value in values.items() if isinstance(value, dict)}
             for step, values in read_events(directory).items()}
    return {step: values for step, values in found.items() if values}


def read(directory, was_killed=False):
    lines = read_lines(directory)
    events = {step: {name: value for name, value in values.items() if isinstance(value, float)}
              for step, values in read_events(directory).items()}
    if was_killed and len(lines) == len(events) + 1:  # between the two
        lines.popitem()
    assert lines.keys() == events.keys(), (lines.keys(), events.keys())
    for step, values in lines.items():
        assert values.keys() == events[step].keys(), (step, values, events[step])
        for name, value in values.items():
            assert same(value, events[step][name]), (step, name, value, events[step][name])
    return lines
