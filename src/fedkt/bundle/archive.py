"""A received zip archive, looked at before it is unpacked: its directory must describe exactly what is there.

A bundle has a fixed form, so everything zip allows beyond it is refused: other names, twins, encryption, other
compressions, comments, bytes before, between or after the members.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

from fedkt.errors import BundleError

if TYPE_CHECKING:
    from fedkt.models.onnx_rules import Limits

MEMBER_NAME = re.compile(r"models/(0|[1-9][0-9]{0,5})\.onnx|arrays/(0|[1-9][0-9]{0,5})\.bin")
LOCAL = struct.Struct("<4s5H3L2H")


class Archive:
    """The members of a bundle, whose names and declared sizes have been checked."""

    def __init__(self, data: bytes, source: str, bounds: Limits) -> None:
        self._data, self._source, self._bounds = data, source, bounds
        if len(data) > bounds.bundle_bytes:
            raise self._refused(f"it is too large: {len(data)} bytes, at most {bounds.bundle_bytes} are read.")
        if data[:4] != b"PK\x03\x04":
            raise self._refused("it is not a zip archive.")
        self._members = self._directory()
        self.names = [each.filename for each in self._members]
        self._check_names()
        unpacked = sum(each.file_size for each in self._members)
        if unpacked > bounds.unpacked_bytes:
            raise self._refused(f"it is too large: its members declare {unpacked} bytes together.")
        place = 0
        self._content: dict[str, tuple[int, zipfile.ZipInfo]] = {}
        for member in self._members:
            place = self._check_member(member, place)
        end = len(data) - 22
        directory = int.from_bytes(data[end + 16 : end + 20], "little")
        if directory != place or directory + int.from_bytes(data[end + 12 : end + 16], "little") != end:
            raise self._refused("there are bytes between its members and its directory.")

    def read(self, name: str) -> bytes:
        """The content of a member, which must be exactly as long as declared."""
        start, member = self._content[name]
        packed = self._data[start : start + member.compress_size]
        if member.compress_type == zipfile.ZIP_STORED:
            content = packed
        else:
            unpacker = zlib.decompressobj(-15)
            try:
                content = unpacker.decompress(packed, member.file_size + 1)
            except zlib.error as reason:
                raise self._refused(f"{name} is damaged: {reason}") from reason
            if not unpacker.eof or unpacker.unused_data:
                raise self._refused(f"{name} unpacks to another size than the {member.file_size} bytes it declares.")
        if len(content) != member.file_size:
            raise self._refused(f"{name} unpacks to another size than the {member.file_size} bytes it declares.")
        if zlib.crc32(content) != member.CRC:
            raise self._refused(f"{name} is damaged: its checksum is wrong.")
        return content

    def _refused(self, reason: str) -> BundleError:
        return BundleError(f"Bundle in {self._source} is refused: {reason}")

    def _directory(self) -> list[zipfile.ZipInfo]:
        end = len(self._data) - 22
        # The end record must be the last 22 bytes: a comment or trailing bytes would move it.
        if end < 0 or self._data[end : end + 4] != b"PK\x05\x06":
            raise self._refused("it is not a zip archive, was cut short, or has bytes after its end.")
        members = int.from_bytes(self._data[end + 10 : end + 12], "little")
        if members > self._bounds.models + self._bounds.arrays + 2:
            raise self._refused(f"it has too many members: {members}.")
        try:
            with zipfile.ZipFile(io.BytesIO(self._data)) as opened:
                found = opened.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, EOFError, OverflowError) as reason:
            raise self._refused(f"its zip directory is damaged: {str(reason)[:200]}") from reason
        if len(found) != members:
            raise self._refused("its zip directory is damaged: the count of members is wrong.")
        return found

    def _check_names(self) -> None:
        for member, name in zip(self._members, self.names, strict=True):
            if member.orig_filename != name or not (
                name in ("manifest.json", "manifest.sig") or MEMBER_NAME.fullmatch(name)
            ):
                raise self._refused(f"the member name {member.orig_filename[:100]!r} has no place in a bundle.")
        if len(set(self.names)) != len(self.names):
            raise self._refused("a member name appears twice (duplicate).")
        if "manifest.json" not in self.names:
            raise self._refused("manifest.json is missing.")
        models = sum(name.startswith("models/") for name in self.names)
        arrays = sum(name.startswith("arrays/") for name in self.names)
        if models > self._bounds.models or arrays > self._bounds.arrays:
            raise self._refused(f"it has too many members: {models} models and {arrays} arrays.")
        order = ["manifest.json", "manifest.sig"] if "manifest.sig" in self.names else ["manifest.json"]
        order += [f"models/{place}.onnx" for place in range(models)]
        order += [f"arrays/{place}.bin" for place in range(arrays)]
        if self.names != order:
            raise self._refused(
                "its members are not manifest.json, models/0.onnx, models/1.onnx, …, arrays/0.bin, … in this order."
            )

    def _check_member(self, member: zipfile.ZipInfo, place: int) -> int:
        """The place after a member, which must start where the one before it ended."""
        name = member.filename
        if member.flag_bits & ~0x800:
            raise self._refused(f"{name} is encrypted or uses zip features (flags) that a bundle does not need.")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._refused(f"{name} uses a compression other than stored or deflated.")
        cap = self._bounds.manifest_bytes if name.startswith("manifest.") else self._bounds.member_bytes
        if member.file_size > cap:
            raise self._refused(
                f"{name} declares {member.file_size} bytes, which is too large; at most {cap} are read."
            )
        if member.file_size > self._bounds.ratio * max(1, member.compress_size):
            raise self._refused(f"{name} would grow more than {self._bounds.ratio}-fold (ratio): a zip bomb.")
        head = self._data[place : place + LOCAL.size]
        if member.header_offset != place or len(head) != LOCAL.size:
            raise self._refused(f"{name} does not follow the member before it.")
        magic, _, flags, kind, _, _, crc, packed, size, name_size, extra = LOCAL.unpack(head)
        name_size = int(name_size)
        declared = (member.flag_bits, member.compress_type, member.CRC, member.compress_size, member.file_size)
        start = place + LOCAL.size + name_size
        text = self._data[place + LOCAL.size : start]
        if magic != b"PK\x03\x04" or (flags, kind, crc, packed, size) != declared or extra or text != name.encode():
            raise self._refused(f"{name} is described differently by its own header and by the directory.")
        if member.extra or member.comment:
            raise self._refused(f"{name} has extra fields or a comment.")
        self._content[name] = (start, member)
        if start + member.compress_size > len(self._data):
            raise self._refused(f"{name} was cut short.")
        return start + member.compress_size
