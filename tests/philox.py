"""Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011) in plain Python, to check compiled versions."""


def philox(
    counter: tuple[int, int, int, int], key_low: int, key_high: int
) -> tuple[int, int, int, int]:
    """Four 32-bit numbers."""
    mask = 2**32 - 1
    a, b, c, d = counter
    for _ in range(10):
        x = 0xD2511F53 * a
        y = 0xCD9E8D57 * c
        a = (y >> 32) ^ b ^ key_low
        b = y & mask
        c = (x >> 32) ^ d ^ key_high
        d = x & mask
        key_low = (key_low + 0x9E3779B9) & mask
        key_high = (key_high + 0xBB67AE85) & mask
    return a, b, c, d
