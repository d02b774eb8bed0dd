"""A received zip archive, looked at before it is unpacked: its directory must describe exactly what is there.

A bundle has a fixed form, so everything zip allows beyond it is refused: other names, twins, encryption, other
compressions, comments, large-file records, bytes before, between or after the members. The directory is read here and
not by the standard library, which builds an entry for whatever a directory of any length holds before it can be asked.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedkt.errors import BundleError

if TYPE_CHECKING:
    from fedkt.models.onnx_rules import Limits

MEMBER_NAME = re.compile(r"models/(0|[1-9][0-9]{0,5})\.onnx|arrays/(0|[1-9][0-9]{0,5})\.bin")
LOCAL = struct.Struct("<4s5H3L2H")
ENTRY = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")


@dataclass(frozen=True)
class ArchiveMember:
    """What the directory says of one member."""

    name: str
    raw_name: bytes
    flags: int
    kind: int
    crc: int
    packed: int
    """Bytes in the archive."""
    size: int
    """Bytes unpacked, as declared."""
    place: int
    more: bool
    """Whether it has extra fields or a comment."""


class Archive:
    """The members of a bundle, whose number, names and declared sizes have been checked; none has been unpacked."""

    def __init__(self, data: bytes, source: str, bounds: Limits) -> None:
        self._data, self._source, self._bounds = memoryview(data), source, bounds
        if len(data) > bounds.bundle_bytes:
            raise self._refusal(
                f"it is too large: {len(data)} bytes, at most {bounds.bundle_bytes} are read{bounds.advice}."
            )
        if data[:4] != b"PK\x03\x04":
            raise self._refusal("it is not a zip archive.")
        members, start = self._directory()
        self.names = [each.name for each in members]
        self._check_names()
        unpacked = sum(each.size for each in members)
        if unpacked > bounds.unpacked_bytes:
            raise self._refusal(
                f"it is too large: its members declare {unpacked} bytes together, at most {bounds.unpacked_bytes} are "
                f"unpacked{bounds.advice}."
            )
        place = 0
        self._content: dict[str, tuple[int, ArchiveMember]] = {}
        for member in members:
            place = self._check_member(member, place)
        if start != place:
            raise self._refusal("there are bytes between its members and its directory.")

    def size(self, name: str) -> int:
        """How many bytes a member declares to have."""
        return self._content[name][1].size

    def read(self, name: str) -> bytes:
        """The content of a member, which must be exactly as long as declared."""
        start, member = self._content[name]
        packed = self._data[start : start + member.packed]
        if member.kind == zipfile.ZIP_STORED:
            content = bytes(packed)
        else:
            unpacker = zlib.decompressobj(-15)
            try:
                content = unpacker.decompress(packed, member.size + 1)
            except zlib.error as reason:
                raise self._refusal(f"{name} is damaged: {reason}") from reason
            if not unpacker.eof or unpacker.unused_data:
                raise self._refusal(f"{name} unpacks to another size than the {member.size} bytes it declares.")
        if len(content) != member.size:
            raise self._refusal(f"{name} unpacks to another size than the {member.size} bytes it declares.")
        if zlib.crc32(content) != member.crc:
            raise self._refusal(f"{name} is damaged: its checksum is wrong.")
        return content

    def _refusal(self, reason: str) -> BundleError:
        return BundleError(f"Bundle in {self._source} is refused: {reason}")

    def _directory(self) -> tuple[list[ArchiveMember], int]:
        """The directory's entries and where it begins; their number is bounded before the first is read."""
        end = len(self._data) - END.size
        # The end record must be the last 22 bytes: a comment or trailing bytes would move it.
        if end < 0 or bytes(self._data[end : end + 4]) != b"PK\x05\x06":
            raise self._refusal("it is not a zip archive, was cut short, or has bytes after its end.")
        _, disk, first, here, count, size, start, comment = END.unpack(self._data[end:])
        if count > self._bounds.models + self._bounds.arrays + 2:
            raise self._refusal(
                f"it holds too many models or arrays: {count} members, where {self._bounds.models} models and "
                f"{self._bounds.arrays} arrays are allowed at most."
            )
        if (disk, first, comment) != (0, 0, 0) or here != count or start + size > end:
            raise self._refusal("its zip directory is damaged: its end record does not fit.")
        if start + size < end:
            raise self._refusal("there are bytes between its directory and its end.")
        members, place = [], start
        for _ in range(count):
            member, place = self._entry(place, end)
            members.append(member)
        if place != end:
            raise self._refusal("its zip directory is damaged: the count of members is wrong.")
        return members, start

    def _entry(self, place: int, end: int) -> tuple[ArchiveMember, int]:
        """One entry of the directory and the place after it."""
        after = place + ENTRY.size
        if after > end or bytes(self._data[place : place + 4]) != b"PK\x01\x02":
            raise self._refusal("its zip directory is damaged.")
        _, _, _, flags, kind, _, _, crc, packed, size, name_size, extra, comment, disk, _, _, offset = ENTRY.unpack(
            self._data[place:after]
        )
        if after + name_size + extra + comment > end or disk:
            raise self._refusal("its zip directory is damaged: an entry does not end.")
        raw = bytes(self._data[after : after + name_size])
        more = bool(extra or comment)
        name = raw.decode("utf-8", "replace")
        member = ArchiveMember(name, raw, flags, kind, crc, packed, size, offset, more)
        return member, after + name_size + extra + comment

    def _check_names(self) -> None:
        for name in self.names:
            if name not in ("manifest.json", "manifest.sig") and not MEMBER_NAME.fullmatch(name):
                raise self._refusal(f"the member name {name[:100]!r} has no place in a bundle.")
        if len(set(self.names)) != len(self.names):
            raise self._refusal("a member name appears twice (duplicate).")
        if "manifest.json" not in self.names:
            raise self._refusal("manifest.json is missing.")
        models = sum(name.startswith("models/") for name in self.names)
        arrays = sum(name.startswith("arrays/") for name in self.names)
        order = ["manifest.json", "manifest.sig"] if "manifest.sig" in self.names else ["manifest.json"]
        order += [f"models/{place}.onnx" for place in range(models)]
        order += [f"arrays/{place}.bin" for place in range(arrays)]
        if self.names != order:
            raise self._refusal(
                "its members are not manifest.json, models/0.onnx, models/1.onnx, …, arrays/0.bin, … in this order."
            )
        for count, most, what in ((models, self._bounds.models, "models"), (arrays, self._bounds.arrays, "arrays")):
            if count > most:
                raise self._refusal(f"it holds too many {what}: {count}, where {most or 'none'} are expected at most.")

    def _check_member(self, member: ArchiveMember, place: int) -> int:
        """The place after a member, which must start where the one before it ended."""
        name = member.name
        if member.flags & ~0x800:
            raise self._refusal(f"{name} is encrypted or uses zip features (flags) that a bundle does not need.")
        if member.kind not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._refusal(f"{name} uses a compression other than stored or deflated.")
        cap = self._bounds.manifest_bytes if name.startswith("manifest.") else self._bounds.member_bytes
        if member.size > cap:
            raise self._refusal(f"{name} declares {member.size} bytes, which is too large; at most {cap} are read.")
        if member.size > self._bounds.ratio * max(1, member.packed):
            raise self._refusal(f"{name} would grow more than {self._bounds.ratio}-fold (ratio): a zip bomb.")
        head = self._data[place : place + LOCAL.size]
        if member.place != place or len(head) != LOCAL.size:
            raise self._refusal(f"{name} does not follow the member before it.")
        magic, _, flags, kind, _, _, crc, packed, size, name_size, extra = LOCAL.unpack(head)
        name_size = int(name_size)
        declared = (member.flags, member.kind, member.crc, member.packed, member.size)
        start = place + LOCAL.size + name_size
        text = self._data[place + LOCAL.size : start]
        described = (flags, kind, crc, packed, size)
        if magic != b"PK\x03\x04" or described != declared or extra or text != member.raw_name:
            raise self._refusal(f"{name} is described differently by its own header and by the directory.")
        if member.more:
            raise self._refusal(f"{name} has extra fields or a comment.")
        self._content[name] = (start, member)
        if start + member.packed > len(self._data):
            raise self._refusal(f"{name} was cut short.")
        return start + member.packed
