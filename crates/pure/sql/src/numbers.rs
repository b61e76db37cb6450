//! Long lists of plain numbers, `1,2, 3`, passed 64 bytes at a time: no branch depends on how long
//! a number is.

const BLOCK: usize = 64;

/// Of the list `,2, 3,4` that begins at `at`, with a digit before: where a later comma of it
/// stands, and how many whole numbers are before that one. (`at`, 0) if the list is short.
#[inline]
pub(crate) fn list(text: &[u8], at: usize) -> (usize, usize) {
    let (mut end, mut commas) = (at, 0);
    if !matches!(
        text.get(at + 1..at + 3),
        Some([b'0'..=b'9', _] | [b' ', b'0'..=b'9'])
    ) {
        return (at, 0);
    }
    while let Some(Ok(window)) = end
        .checked_sub(1)
        .and_then(|start| text.get(start..end + BLOCK + 2))
        .map(<&[u8; BLOCK + 3]>::try_from)
    {
        let Some(count) = commas_of(window) else {
            break;
        };
        commas += count;
        end += BLOCK;
    }
    match memchr::memrchr(b',', &text[at..end]) {
        Some(last) => (at + last, commas - 1),
        None => (at, 0),
    }
}

/// How many commas a part of a list has; none if it is not one. The first byte is the one before,
/// the last two are those after.
fn commas_of(window: &[u8; BLOCK + 3]) -> Option<usize> {
    let part = |from: usize| {
        window
            .get(from..from + BLOCK)
            .and_then(|part| <&[u8; BLOCK]>::try_from(part).ok())
    };
    let (before, here, next, after) = (part(0)?, part(1)?, part(2)?, part(3)?);
    let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let (mut others, mut commas) = (0_u8, 0_u8);
    // Without a branch, so that the compiler makes vectors of it.
    for at in 0..BLOCK {
        let comma = (here[at] == b',')
            & is_digit(before[at])
            & (is_digit(next[at]) | (next[at] == b' ') & is_digit(after[at]));
        let blank = (here[at] == b' ') & (before[at] == b',') & is_digit(next[at]);
        others |= u8::from(!(is_digit(here[at]) | comma | blank));
        commas += u8::from(comma);
    }
    (others == 0).then_some(usize::from(commas))
}

/// Checks what [`list`] says, number by number.
///
/// # Panics
/// It says something else.
pub(crate) fn check(text: &[u8], at: usize) {
    let (end, count) = list(text, at);
    let mut walked = at;
    for _ in 0..count {
        assert_eq!(text[walked], b',');
        walked += if text[walked + 1] == b' ' { 2 } else { 1 };
        let digits = text[walked..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        assert!(digits > 0);
        walked += digits;
    }
    assert_eq!(walked, end);
    assert!(count == 0 || text[end] == b',');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_passed_up_to_one_of_its_last_commas() {
        let numbers: Vec<_> = (0..200_u32)
            .map(|n| (n * 7919 % 100_000).to_string())
            .collect();
        for between in [",", ", "] {
            let text = format!("1{between}{}) AND b", numbers.join(between)).into_bytes();
            let (end, count) = list(&text, 1);
            assert!(
                count > 150 && text.len() - end < 200,
                "{count} {end} of {}",
                text.len()
            );
            check(&text, 1);
            // Whatever one byte is instead, it is passed only if it belongs to the list.
            for changed in 0..text.len() {
                for byte in *b" ,.aZ_-'0)\n+" {
                    let mut other = text.clone();
                    other[changed] = byte;
                    if other[0].is_ascii_digit() && other[1] == b',' {
                        check(&other, 1);
                    }
                }
            }
        }
        assert_eq!(list(b"1,2,3", 1), (1, 0));
        assert_eq!(list(&b"1".repeat(300), 1), (1, 0));
    }
}
