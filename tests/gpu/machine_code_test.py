#!/usr/bin/env python3
"""machine_code_test.py OBJECT...: checks the machine code of the hot kernels, one line of a table for each.

Reads the machine code of sm_90 in the objects that nvcc wrote. Prints the table, and fails where a kernel keeps
something in memory of its own, takes more registers than its line allows, or does not move its elements in 16 bytes.
"""

import collections
import dataclasses
import re
import struct
import subprocess
import sys

ARCHITECTURE = 90


@dataclasses.dataclass
class Limits:
    """Registers decide how many blocks fit on a multiprocessor: 64 Ki of them for all of its threads."""
    registers: int
    loads: int = 0  # instructions that load 16 bytes from device memory: at least so many
    stores: int = 0  # likewise
    stack_bytes: int = 0


# A kernel's name without namespaces, arguments and spaces: its limits. `*` stands for any type.
HOT_KERNELS = {
    # Four warps of 32: 128 registers are 4 blocks on a multiprocessor, 168 are 3, 176 to 255 are 2.
    "AttentionTensorCoreKernel<WarpTiles<64,*>": Limits(128),
    "AttentionTensorCoreKernel<WarpTiles<128,*>": Limits(168),
    "AttentionKeyGradTensorCoreKernel<WarpTiles<64,*>": Limits(168),
    "AttentionKeyGradTensorCoreKernel<WarpTiles<128,*>": Limits(255),
    "AttentionQueryGradTensorCoreKernel<WarpTiles<64,*>": Limits(168),
    "AttentionQueryGradTensorCoreKernel<WarpTiles<128,*>": Limits(168),
    "AttentionTensorCoreKernel<WarpgroupTiles<*>": Limits(128),
    "AttentionKeyGradTensorCoreKernel<WarpgroupTiles<*>": Limits(168),
    "AttentionQueryGradTensorCoreKernel<WarpgroupTiles<*>": Limits(168),
    # Eight warps: 32 registers are 8 blocks, 40 are 6, 64 are 4.
    "AttentionDotKernel<true,*>": Limits(40, loads=2),
    "SoftmaxCrossEntropyKernel<*>": Limits(40, loads=1),
    "SoftmaxCrossEntropyGradKernel<*>": Limits(40, loads=1, stores=1),
    # 32 warps: 32 registers are 2 blocks.
    "SoftmaxCrossEntropyWithGradKernel<1024,*>": Limits(32, loads=1, stores=1),
    "SoftmaxCrossEntropyWithGradKernel<256,*>": Limits(64, loads=1, stores=1),
    "LayerNormKernel<8,*>": Limits(40, loads=3, stores=1),
    # Four rows at once, by three warps for GPT-2: with 128 registers 5 blocks of them.
    "NormGradKernel<8,true,*>": Limits(128, loads=8, stores=4),
    "NormGradKernel<8,false,*>": Limits(128, loads=8, stores=4),
    "RmsNormKernel<8,*>": Limits(40, loads=2, stores=1),
    "ColumnSumChunkKernel<8,*>": Limits(64, loads=1, stores=1),
    "ColumnSumFinishKernel<*>": Limits(32),
    "PackKernel<8,CastBody<*>>": Limits(32, loads=1, stores=1),
    "PackKernel<8,ElementwiseBody<*>>": Limits(48, loads=1, stores=1),  # 48, which are 5 blocks, for the powers
    "PackKernel<8,AccumulateBody<*>>": Limits(32, loads=2, stores=1),
    "PreparedPackKernel<8,DropoutBody<*>>": Limits(40, loads=1, stores=1),
    "PreparedPackKernel<4,UpdateBody<AdamRule,*>>": Limits(64, loads=3, stores=3),
    "PreparedPackKernel<4,UpdateBody<SgdMomentumRule,*>>": Limits(40, loads=2, stores=2),
    "EmbeddingKernel<uint4>": Limits(40, loads=1, stores=1),
    "SumRowsKernel<8,*>": Limits(32, loads=1, stores=1),
    # Terms of four ranks in flight at once, besides the first rank's; and a sum to start from.
    "FoldPeersKernel<4,float,float>": Limits(40, loads=9, stores=1),
    "FoldPeersKernel<8,*>": Limits(40, loads=9, stores=1),
    "FoldPeersKernel<2,long,long>": Limits(40, loads=9, stores=1),
}

# The lowest 12 bits of an instruction; bits 73 to 75 say how much it moves, 6 for 16 bytes.
LOADS = (0x381, 0x981)
STORES = (0x386, 0x986)
LOCAL = (0x383, 0x387, 0x983, 0x987)  # spilled registers, and arrays with a computed index
SIXTEEN_BYTES = 6


@dataclasses.dataclass
class Code:
    name: str
    instructions: int
    registers: int
    stack_bytes: int
    loads: int
    stores: int
    local: int


def sections(elf):
    """{name: (content, info)} of an ELF file of 64 bits."""
    offset, = struct.unpack_from("<Q", elf, 0x28)
    count, names_index = struct.unpack_from("<2H", elf, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + 64 * i) for i in range(count)]
    names = elf[headers[names_index][4]:]
    return {names[h[0]:names.index(b"\0", h[0])].decode(): elf[h[4]:h[4] + h[5]] for h in headers}


def device_programs(path):
    """The ELF files for the architecture in an object of the host's."""
    with open(path, "rb") as file:
        fat_binary = sections(file.read()).get(".nv_fatbin", b"")
    at = 0
    while at + 16 <= len(fat_binary):
        magic, _, header_bytes, content_bytes = struct.unpack_from("<IHHQ", fat_binary, at)
        if magic != 0xBA55ED50:
            sys.exit(f"{path}: not a fat binary as this script knows them")
        entry = at + header_bytes
        at = entry + content_bytes
        while entry < at:
            kind, _, entry_header_bytes, entry_bytes = struct.unpack_from("<HHIQ", fat_binary, entry)
            architecture, = struct.unpack_from("<I", fat_binary, entry + 28)
            begin = entry + entry_header_bytes
            entry = begin + entry_bytes
            program = fat_binary[begin:entry]
            if kind == 2 and architecture == ARCHITECTURE:
                if not program.startswith(b"\x7fELF"):
                    sys.exit(f"{path}: the machine code is compressed; this script reads what nvcc of CUDA 13.0 writes")
                yield program


def attributes(program):
    """{attribute: {kernel: value}} of .nv.info: 0x11 is the stack's size, 0x2f the number of registers."""
    found = collections.defaultdict(dict)
    content = program[".nv.info"]
    at = 0
    while at < len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if form != 4:
            continue
        if size == 8:
            symbol, value = struct.unpack_from("<2I", content, at)
            name_at, = struct.unpack_from("<I", program[".symtab"], 24 * symbol)
            names = program[".strtab"]
            found[attribute][names[name_at:names.index(b"\0", name_at)].decode()] = value
        at += size
    return found


def codes(path):
    for elf in device_programs(path):
        program = sections(elf)
        numbers = attributes(program)
        for section, content in program.items():
            if not section.startswith(".text."):
                continue
            kernel = section[len(".text."):]
            counts = collections.Counter()
            for low, high in struct.iter_unpack("<QQ", content):
                operation, is_wide = low & 0xFFF, high >> 9 & 7 == SIXTEEN_BYTES
                counts["loads"] += operation in LOADS and is_wide
                counts["stores"] += operation in STORES and is_wide
                counts["local"] += operation in LOCAL
            yield Code(kernel, len(content) // 16, numbers[0x2F][kernel], numbers[0x11].get(kernel, 0),
                       counts["loads"], counts["stores"], counts["local"])


def plain(name):
    """"void a::(anonymous namespace)::K<8, a::T>(int)" as "K<8,T>"."""
    name = re.sub(r"zg::|cuda::|\(anonymous namespace\)::|^void |\s", "", name)
    depth = 0
    for at, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            return name[:at]
    return name


def matches(kernel, pattern):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), kernel)


def problems_of(code, limits):
    if code.registers > limits.registers:
        yield f"{code.registers} registers, more than {limits.registers}"
    if code.stack_bytes > limits.stack_bytes:
        yield f"a stack frame of {code.stack_bytes} bytes"
    if code.local and not limits.stack_bytes:
        yield f"{code.local} accesses to local memory"
    if code.loads < limits.loads:
        yield f"{code.loads} loads of 16 bytes, fewer than {limits.loads}"
    if code.stores < limits.stores:
        yield f"{code.stores} stores of 16 bytes, fewer than {limits.stores}"


def main():
    found = [code for path in sys.argv[1:] for code in codes(path)]
    demangled = subprocess.run(["c++filt"], input="\n".join(code.name for code in found), capture_output=True,
                               text=True, check=True).stdout.split("\n")
    failed = 0
    print(f"{'kernel':64} instructions registers stack loads stores (of 16 bytes)")
    for pattern, limits in HOT_KERNELS.items():
        matching = {(plain(name), *dataclasses.astuple(code)[1:]): code
                    for name, code in zip(demangled, found) if matches(plain(name), pattern)}
        if not matching:
            failed += 1
            print(f"FAILED: there is no kernel {pattern}")
        for (kernel, *_), code in sorted(matching.items()):
            print(f"{kernel[:64]:64} {code.instructions:12} {code.registers:9} {code.stack_bytes:5} {code.loads:5} "
                  f"{code.stores:6}")
            for problem in problems_of(code, limits):
                failed += 1
                print(f"FAILED: {kernel}: {problem}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
