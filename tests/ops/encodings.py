"""Names, tables and sums of text encodings, from TensorFlow: kernels/src/cpu/string/encoding/*.txt.

    cargo run -p ferroflow-kernels --example encoding_tables -- FOLDER
    python encodings.py FOLDER

FOLDER receives the tables of encoding_rs, which tables of several bytes are told by. Names are read from
ICU's list inside of TensorFlow's library; what each byte, each two bytes and a sample of texts mean is what
`UnicodeDecodeWithOffsets` says. `listing.rs` tells the format of tables.
"""

import mmap, os, struct, sys, unicodedata, zlib
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

OUT = Path(__file__).resolve().parents[2] / "kernels/src/cpu/string/encoding"
ERROR = 0x10FFFF
# Codes of what is no character; (a, b) is two of them.
LEAD, BAD, BAD_FIRST = -1, -2, -3
WHATWG = ["Shift_JIS", "EUC-JP", "GBK", "gb18030", "Big5", "EUC-KR"]
UNICODE = """UTF-8 UTF-16 UTF-16BE UTF-16LE UTF16_PlatformEndian UTF16_OppositeEndian UTF-32 UTF-32BE UTF-32LE
UTF32_PlatformEndian UTF32_OppositeEndian ISO-8859-1 US-ASCII""".split()
ISO_2022 = [f"ISO_2022,locale=ja,version={n}" for n in range(5)]
MULTI_BYTE = """ibm-943_P15A-2003 ibm-943_P130-1999 ibm-942_P12A-1999 euc-jp-2007 ibm-33722_P12A_P12A-2009_U2
ibm-33722_P120-1999 ibm-954_P101-2007 windows-936-2000 ibm-1386_P100-2001 ibm-1383_P110-1999 gb18030 windows-950-2000
ibm-1373_P100-2002 ibm-950_P110-1999 ibm-1375_P100-2008 ibm-5471_P100-2006 windows-949-2000 ibm-1363_P11B-1998
ibm-1363_P110-1997 ibm-970_P110_P110-2006_U2 ibm-949_P110-1999 ibm-949_P11A-1999""".split()
BYTES = [bytes([a]) for a in range(256)]
PAIRS = [bytes([a, b]) for a in range(256) for b in range(256)]


def icu_names():
    """Encodings in ICU's order, each with its names: `cnvalias.icu` in the library's data."""
    library = Path(tf.__file__).parent / "libtensorflow_cc.so.2"
    with open(library, "rb") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        at = memory.find(b"CmnD")
        while memory[at - 10 : at - 8] != b"\xda\x27":
            at = memory.find(b"CmnD", at + 1)
        start = at - 12 + struct.unpack("<H", memory[at - 12 : at - 10])[0]
        count = struct.unpack("<I", memory[start : start + 4])[0]
        for n in range(count):
            name, data = struct.unpack("<II", memory[start + 4 + 8 * n : start + 12 + 8 * n])
            end = memory.find(b"\0", start + name)
            if memory[start + name : end].endswith(b"cnvalias.icu"):
                following = struct.unpack("<II", memory[start + 12 + 8 * n : start + 20 + 8 * n])[1]
                table = memory[start + data : start + following]
    table = table[struct.unpack("<H", table[:2])[0] :]
    count = struct.unpack("<I", table[:4])[0]
    sections, at = [], 4 + 4 * count
    for size in struct.unpack(f"<{count}I", table[4:at]):
        sections.append(table[at : at + 2 * size])
        at += 2 * size
    numbers = lambda section: struct.unpack(f"<{len(section) // 2}H", section)
    text = lambda at: sections[7][2 * at : sections[7].index(b"\0", 2 * at)].decode()
    encodings = [text(at) for at in numbers(sections[0])]
    names = {encoding: [encoding] for encoding in encodings}
    for name, index in zip(numbers(sections[2]), numbers(sections[3])):
        encoding = encodings[index & 0xFFF]
        if text(name) != encoding:
            names[encoding].append(text(name))
    return names


def decoded(name, texts):
    """Splits, characters and offsets; None where TensorFlow does not know the encoding."""
    try:
        results = tf.raw_ops.UnicodeDecodeWithOffsets(
            input=tf.constant(texts), input_encoding=name, errors="replace", replacement_char=ERROR,
            replace_control_characters=False)
    except tf.errors.InvalidArgumentError:
        return None
    return [np.asarray(result) for result in results]


def rows(found):
    splits, characters, offsets = [part.tolist() for part in found]
    return [(tuple(characters[a:b]), tuple(offsets[a:b])) for a, b in zip(splits, splits[1:])]


def summed(found):
    """As `tests.rs` sums what it decodes."""
    splits, characters, offsets = found
    values = np.stack([characters, offsets], 1).reshape(-1).astype("<u4")
    return "%08x" % zlib.crc32(np.insert(values, 2 * splits[1:], 0xFFFFFFFF).astype("<u4").tobytes())


def sample():
    """As `tests.rs` makes it."""
    special, other, state, texts = b"\x1b$B(JI\x0e\x0fN.AF09\x81\xfe\xa1\x8e\x8f\n\xa0\xff@D\x7f", b"\xb0\xa1A\x8f1", 1, []

    def following():
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return state >> 16

    def byte(n):
        value = following()
        return [value % 256, value % 128 | 128, special[value % len(special)], other[value % 5]][n % 4]

    for n in range(4096):
        texts.append(bytes([byte(n) for _ in range(following() % 12)]))
    return texts


def is_plain(code):
    """Whether a character may stand in the text of a table as it is."""
    text = chr(code)
    return not (unicodedata.category(text) in "Zs Zl Zp Cc Cf Cs Co Cn Mn Mc Me".split() or text in ":=+!?, "
                or unicodedata.bidirectional(text) in ("R", "AL"))


def items(places, wanted, base, width):
    """What differs from `base`, as items."""
    out, at = [], 0
    while at < len(places):
        code, key = wanted[places[at]], f"{places[at]:0{width}x}"
        if code == base[places[at]]:
            at += 1
            continue
        if isinstance(code, tuple):
            out.append(f"{key}={code[0]:x},{code[1]:x}")
            at += 1
            continue
        step = 0 if code < 0 else 1
        end = at
        while end < len(places) and wanted[places[end]] == code + step * (end - at):
            end += 1
        while wanted[places[end - 1]] == base[places[end - 1]]:
            end -= 1
        count = f"+{end - at}" if end - at > 1 else ""
        if code < 0:
            out.append(key + count + {BAD: "!", BAD_FIRST: "?"}[code])
            at = end
        elif end - at >= 6 or not is_plain(code):
            out.append(f"{key}{count}={code:x}")
            at = end
        else:
            text = ""
            while at < len(places):
                code = wanted[places[at]]
                if not isinstance(code, int) or code < 0 or not is_plain(code) or code == base[places[at]]:
                    break
                run = [wanted[place] for place in places[at : at + 12]]
                if text and run == list(range(code, code + 12)):
                    break
                text += chr(code)
                at += 1
            out.append(f"{key}:{text}")
    return out


def section(header, found):
    lines, line = [header], ""
    for item in found:
        if line and len(line) + len(item) > 99:
            lines.append(line)
            line = ""
        line += " " + item
    return lines + ([line] if line else [])


def ranges(numbers):
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a:02x}-{b:02x}" if a != b else f"{a:02x}" for a, b in runs)


class Table:
    """What single bytes and two bytes are, and which bytes lead and follow."""

    def __init__(self, name, singles, pairs):
        self.name, self.keyed = name, {}
        self.singles = {b: characters[0] if characters != (ERROR,) else BAD for b, (characters, _) in enumerate(singles)}
        row = lambda a, b: pairs[a << 8 | b]
        self.leads = [a for a in range(256) if self.singles[a] == BAD and any(len(row(a, b)[0]) == 1 for b in range(256))]
        for a in self.leads:
            for b in range(256):
                characters, offsets = row(a, b)
                if characters == (ERROR,):
                    code = BAD
                elif len(characters) == 1:
                    code = characters[0]
                elif characters[0] == ERROR and offsets[:2] == (0, 1):
                    code = BAD_FIRST
                else:
                    assert offsets == (0, 2), (name, a, b, characters, offsets)
                    code = characters
                self.keyed[a << 8 | b] = code
        starts = {b for b in range(256) if self.singles[b] != BAD} | set(self.leads)
        for b in set(range(256)) - starts:
            if any(self.keyed[a << 8 | b] == BAD_FIRST for a in self.leads):
                self.singles[b] = BAD_FIRST
                starts.add(b)
        is_trail = lambda b, code: code not in (BAD, BAD_FIRST) or (code == BAD and b in starts)
        trails = {key & 255 for key, code in self.keyed.items() if is_trail(key & 255, code)}
        # These begin characters of four bytes, which `sums.txt` and `quads` hold.
        trails -= set(range(0x30, 0x3A)) if name == "gb18030" else set()
        for a in self.leads:
            self.singles[a] = LEAD
        self.set_places(trails)

    def set_places(self, trails):
        self.trails = sorted(trails)
        self.places = [a << 8 | b for a in self.leads for b in self.trails]

    def lines(self, bases):
        """The shortest way to tell it."""
        return min((self.lines_from(base) for base in bases), key=lambda lines: sum(map(len, lines)))

    def lines_from(self, base):
        singles = {b: LEAD if b in self.leads else BAD if base.singles[b] == LEAD else base.singles[b] for b in range(256)}
        code = lambda key: BAD if base.keyed.get(key, BAD) == BAD_FIRST else base.keyed.get(key, BAD)
        found = items(list(range(256)), self.singles, singles, 2)
        found += items(self.places, self.keyed, {key: code(key) for key in self.places}, 4)
        return section(f"{self.name} {base.name} {ranges(self.leads)} {ranges(self.trails)}", found)


class Part(Table):
    """A table of two bytes of the upper half, with nothing else."""

    def __init__(self, name, keyed, base):
        self.name, self.keyed, self.leads = name, keyed, list(range(0xA1, 0xFF))
        self.set_places(range(0xA1, 0xFF))
        self.singles = {b: LEAD if b in self.leads else base.singles[b] for b in range(256)}


class Whatwg:
    def __init__(self, folder, name, part=0):
        data = np.fromfile(folder / name, "<u4").tolist()
        code = lambda u: BAD if u == 0x110001 else ((u >> 16) & 0x7FFF, u & 0xFFFF) if u >> 31 else u
        self.name = name + ["", "/8f"][part]
        self.singles = dict(enumerate(map(code, data[:256])))
        self.keyed = dict(enumerate(map(code, data[256 + 65536 * part :][:65536])))


def is_single_byte(singles, pairs):
    expected = [(a + b, (0,) * len(a) + (1,) * len(b)) for a, _ in singles for b, _ in singles]
    return expected == pairs


def graphic(prefix, lead=0):
    """Codes of all two graphic bytes after a sequence, by their upper halves."""
    keys = [(a, b) for a in range(0xA1, 0xFF) for b in range(0xA1, 0xFF)]
    texts = [prefix + (bytes([a, b]) if lead else bytes([a - 128, b - 128])) for a, b in keys]
    name = lead or ISO_2022[2]
    found = [characters for characters, _ in rows(decoded(name, texts))]
    return {a << 8 | b: characters[0] if characters[0] != ERROR else BAD for (a, b), characters in zip(keys, found)}


def main(folder):
    names, texts = icu_names(), sample()
    single, multi, sums, tables = [], [], [], {}
    known = {}
    for encoding in names:
        found = decoded(encoding, BYTES)
        if found is None:
            continue
        pairs = decoded(encoding, PAIRS)
        of_bytes, of_pairs = rows(found), rows(pairs)
        is_single = is_single_byte(of_bytes, of_pairs)
        if not is_single and encoding not in UNICODE + MULTI_BYTE + ISO_2022:
            print("left out:", encoding)
            continue
        line = [encoding, summed(found), summed(decoded(encoding, texts))]
        known[encoding] = " ".join(line + ([] if is_single else [summed(pairs)]))
        if is_single and encoding not in UNICODE:
            code = lambda characters: BAD if characters == (ERROR,) else characters[0]
            wanted = {b: code(characters) for b, (characters, _) in enumerate(of_bytes)}
            single += section(encoding, items(list(range(256)), wanted, {b: b for b in range(256)}, 2))
        if encoding in MULTI_BYTE:
            tables[encoding] = Table(encoding, of_bytes, of_pairs)
    bases = [Whatwg(folder, name) for name in WHATWG]
    for encoding in MULTI_BYTE:
        multi += tables[encoding].lines(bases)
        bases.append(tables[encoding])
    triples = [Whatwg(folder, "EUC-JP", 1)]
    for encoding in [name for name in MULTI_BYTE if 0x8F in tables[name].leads and 0x8E in tables[name].leads and tables[name].leads[:2] == [0x8E, 0x8F]]:
        multi += Part(encoding + "/8f", graphic(b"\x8f", encoding), triples[0]).lines(triples)
    multi += Part("jisx-212", graphic(b"\x1b$(D"), triples[0]).lines(triples)
    multi += Part("gb-2312", graphic(b"\x1b$A"), bases[0]).lines(bases)
    write = lambda name, lines: (OUT / name).write_text("".join(line + "\n" for line in lines))
    write("names.txt", [" ".join(names[encoding]) for encoding in known])
    write("single_byte.txt", single)
    write("multi_byte.txt", multi)
    write("sums.txt", known.values())


main(Path(sys.argv[1]))
