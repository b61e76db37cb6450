//! Values of a column as a block has them.

/// The values of a column, or of what is inside of one.
#[derive(Debug)]
pub(crate) enum Data<'b> {
    Nothing,
    /// Each of as many bytes as its type has.
    Fixed(&'b [u8]),
    /// Where each begins and ends.
    Texts(&'b [u8], Vec<(u32, u32)>),
    /// Which are NULL, and what the others are.
    Nullable(&'b [u8], Box<Self>),
    /// Keys of a dictionary; whether the first of it is NULL.
    Low(Box<Self>, Vec<u32>, bool),
    /// Where each ends in what is inside.
    Array(Vec<usize>, Box<Self>),
    Tuple(Vec<Self>),
}

/// A number of up to eight bytes, the least first.
pub(crate) fn number(bytes: &[u8]) -> usize {
    match *bytes {
        [a] => return usize::from(a),
        [a, b] => return usize::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => return u32::from_le_bytes([a, b, c, d]) as usize,
        _ => {}
    }
    if let Ok(eight) = bytes.try_into() {
        return u64::from_le_bytes(eight) as usize;
    }
    let mut eight = [0; 8];
    eight[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    u64::from_le_bytes(eight) as usize
}
