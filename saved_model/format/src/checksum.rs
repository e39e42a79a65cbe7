//! Masked checksums. A stored CRC is rotated and shifted, so that data which holds checksums can
//! be checksummed in turn.

/// The stored form of a CRC-32C.
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_nothing() {
        assert_eq!(mask(crc32c::crc32c(b"")), 0xa282_ead8);
        assert_eq!(mask(0x8000), 0xa282_ead9);
    }
}
