"""A party's signing key: made, read, and held against the plan."""

from __future__ import annotations

from pathlib import Path

from fedkt.bundle.signing import SigningKey, load_key, new_key
from fedkt.errors import ConfigurationError, PlanError
from fedkt.plan import NAME, Plan
from fedkt.system.files import read_at_most, write_atomically


def write_keys(name: str, folder: Path) -> str:
    """A new key pair as <name>.key and <name>.pub; the public key. A key that is there is never overwritten."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} cannot be a party: letters, digits, - and _ only, at most 64.")
    secret, public = folder / f"{name}.key", folder / f"{name}.pub"
    for path in (secret, public):
        if path.exists():
            raise ConfigurationError(
                f"{path} is there already. A plan may rely on it: choose another folder, or remove it yourself."
            )
    key = new_key()
    write_atomically(secret, key.to_pem(), private=True)
    write_atomically(public, f"{key.public}\n".encode())
    return key.public


def read_key(path: Path) -> SigningKey:
    """The private key in a file."""
    data = read_at_most(path, 2**16)
    if data is None:
        raise ConfigurationError(f"{path} is too large to be a key. Pass the .key file that `fedkt keys new` wrote.")
    return load_key(data, source=str(path))


def check_key(plan: Plan, name: str, key: SigningKey | None) -> None:
    """Refuse, before anything is trained, a key that the server would refuse afterwards."""
    public = plan.keys.get(name)
    if key is None and public is not None:
        raise PlanError(f"The plan lists a key for {name!r}, so its bundle must be signed. Pass --key {name}.key.")
    if key is not None and public is None:
        raise PlanError(
            f"The plan lists no key for {name!r}, so nobody could check the signature. Leave --key out, or have the "
            f"plan made again with --key {name}={key.public}."
        )
    if key is not None and key.public != public:
        raise PlanError(
            f"This is not the key that the plan lists for {name!r}: its public key is {key.public}, agreed was "
            f"{public}. Sign with the key that belongs to the plan, or have the plan made again."
        )
