//! Which public keys a signature may be checked against.
//!
//! Invariant: a key of small order is refused, because anyone can compute a valid signature for it without a private key.
//! A second encoding of a point is refused too, so that a text identifies its key (RFC 8032 5.1.3, `verify_strict` of
//! ed25519-dalek).

/// The y coordinates of the eight points of small order: little-endian, without the sign of x.
const SMALL_ORDER: [[u8; 32]; 5] = [
    y_of(0x00, 0x00, 0x00),
    y_of(0x01, 0x00, 0x00),
    y_of(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

/// The coordinate with these first, middle and last bytes.
const fn y_of(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut y = [middle; 32];
    y[0] = first;
    y[31] = last;
    y
}

/// Returns true if `key` is the canonical encoding of a y coordinate that no point of small order has.
pub(super) fn is_acceptable(key: &[u8]) -> bool {
    let Ok(mut y) = <[u8; 32]>::try_from(key) else { return false };
    y[31] &= 0x7f;
    // The field's prime is 2^255 - 19, in bytes ed ff … ff 7f.
    let is_canonical = y[0] < 0xed || y != y_of(y[0], 0xff, 0x7f);
    is_canonical && !SMALL_ORDER.contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_encodings_of_a_point_are_refused() {
        for first in 0xed..=0xff {
            assert!(!is_acceptable(&y_of(first, 0xff, 0x7f)), "{first:x}");
            assert!(!is_acceptable(&y_of(first, 0xff, 0xff)), "{first:x}, negative x");
        }
        assert!(is_acceptable(&y_of(0xeb, 0xff, 0x7f)), "the greatest y of no point of small order");
        assert!(is_acceptable(&y_of(0xee, 0xff, 0x7e)));
        assert!(!is_acceptable(&[2; 31]) && is_acceptable(&[2; 32]), "32 bytes");
    }
}
