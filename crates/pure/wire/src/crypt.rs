//! The hash that accounts of caching_sha2_password store: `$A$005$`, 20 bytes of salt, 43
//! characters of digest.
//!
//! It is Ulrich Drepper's SHA-crypt with SHA-256 (<https://www.akkadia.org/drepper/SHA-crypt.txt>),
//! 1000 rounds times the number in the middle (three hexadecimal digits), with a salt of 20 bytes
//! instead of 16, in MySQL's wrapping
//! (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>).
//! One verification costs some milliseconds on purpose, up to seconds where the hash has many
//! rounds: [`Verification`] does it in pieces.

use crate::auth::{same, sha256};
use sha2::{Digest as _, Sha256};

/// Length of the salt.
pub const SALT_LEN: usize = 20;
/// Rounds of a new hash.
pub const ROUNDS: u32 = 5000;
/// More rounds than this are refused: 0xFFF thousands is what the form can express.
const ROUNDS_MAX: u32 = 0xFFF * 1000;
/// Longer passwords are refused: the work grows with their length and MySQL takes no longer ones.
const PASSWORD_LEN_MAX: usize = 256;
const DIGEST_LEN: usize = 43;

/// Makes the stored form of a password with [`ROUNDS`] rounds. `None` if the password is too long.
pub fn create(password: &[u8], salt: [u8; SALT_LEN]) -> Option<Vec<u8>> {
    // Salt bytes must be no zero and no '$' and 7 bits wide, as MySQL makes them.
    let salt = crate::auth::nonce(salt);
    let digest = digest(password, &salt, ROUNDS)?;
    let mut out = b"$A$005$".to_vec();
    out.extend_from_slice(&salt);
    out.extend_from_slice(&digest);
    Some(out)
}

/// True if the password is the one that `stored` was made of. False as well if `stored` is not of
/// the form.
pub fn verify(stored: &[u8], password: &[u8]) -> bool {
    Verification::new(stored, password).is_some_and(|mut all| all.go_on(u32::MAX) == Some(true))
}

/// Whether a password is the one that a hash was made of, in pieces.
#[derive(Debug)]
pub struct Verification<'s> {
    rounds: Rounds,
    wanted: &'s [u8],
}

impl<'s> Verification<'s> {
    /// `None` if `stored` is not of the form, or the password is too long.
    pub fn new(stored: &'s [u8], password: &[u8]) -> Option<Self> {
        let (rounds, salt, wanted) = parse(stored)?;
        Some(Self {
            rounds: Rounds::new(password, salt, rounds)?,
            wanted,
        })
    }

    /// So many rounds more; the answer, once the last is done.
    pub fn go_on(&mut self, rounds: u32) -> Option<bool> {
        self.rounds
            .go_on(rounds)
            .then(|| same(&base64(&self.rounds.c), self.wanted))
    }
}

/// True if these bytes have the form of a stored hash.
pub fn is_stored(stored: &[u8]) -> bool {
    parse(stored).is_some()
}

/// Rounds, salt, digest.
fn parse(stored: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let rest = stored.strip_prefix(b"$A$")?;
    let (thousands, rest) = rest.split_at_checked(3)?;
    let rest = rest.strip_prefix(b"$")?;
    let thousands = u32::from_str_radix(std::str::from_utf8(thousands).ok()?, 16).ok()?;
    let (salt, digest) = rest.split_at_checked(SALT_LEN)?;
    let rounds = thousands * 1000;
    (digest.len() == DIGEST_LEN && (1000..=ROUNDS_MAX).contains(&rounds))
        .then_some((rounds, salt, digest))
}

/// The 43 characters.
fn digest(password: &[u8], salt: &[u8], rounds: u32) -> Option<[u8; DIGEST_LEN]> {
    let mut all = Rounds::new(password, salt, rounds)?;
    all.go_on(rounds);
    Some(base64(&all.c))
}

/// State that a round makes the next one of.
#[derive(Debug)]
struct Rounds {
    c: [u8; 32],
    p: Vec<u8>,
    s: Vec<u8>,
    /// `done <= wanted`
    done: u32,
    wanted: u32,
}

impl Rounds {
    fn new(password: &[u8], salt: &[u8], wanted: u32) -> Option<Self> {
        if password.len() > PASSWORD_LEN_MAX {
            return None;
        }
        let b = sha256(&[password, salt, password]);

        let mut a = Sha256::new();
        a.update(password);
        a.update(salt);
        a.update(repeat(&b, password.len()));
        let mut bits = password.len();
        while bits > 0 {
            a.update(if bits & 1 != 0 { &b[..] } else { password });
            bits >>= 1;
        }
        let a: [u8; 32] = a.finalize().into();

        let mut dp = Sha256::new();
        password.iter().for_each(|_| dp.update(password));
        let p = repeat(&dp.finalize(), password.len());

        let mut ds = Sha256::new();
        (0..16 + usize::from(a[0])).for_each(|_| ds.update(salt));
        let s = repeat(&ds.finalize(), salt.len());
        Some(Self {
            c: a,
            p,
            s,
            done: 0,
            wanted,
        })
    }

    /// Whether the last round is done.
    fn go_on(&mut self, rounds: u32) -> bool {
        let Self {
            c,
            p,
            s,
            done,
            wanted,
        } = self;
        let until = done.saturating_add(rounds).min(*wanted);
        for round in *done..until {
            let mut h = Sha256::new();
            let odd = round % 2 != 0;
            h.update(if odd { &p[..] } else { &c[..] });
            if round % 3 != 0 {
                h.update(&s);
            }
            if round % 7 != 0 {
                h.update(&p);
            }
            h.update(if odd { &c[..] } else { &p[..] });
            *c = h.finalize().into();
        }
        *done = until;
        until == *wanted
    }
}

/// `len` bytes of `block`, over and over.
fn repeat(block: &[u8], len: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(len).collect()
}

/// crypt's own base 64: three bytes at a time in an order of its own, six bits at a time from the
/// low end.
fn base64(c: &[u8; 32]) -> [u8; DIGEST_LEN] {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const ORDER: [[usize; 3]; 10] = [
        [0, 10, 20],
        [21, 1, 11],
        [12, 22, 2],
        [3, 13, 23],
        [24, 4, 14],
        [15, 25, 5],
        [6, 16, 26],
        [27, 7, 17],
        [18, 28, 8],
        [9, 19, 29],
    ];
    let mut out = [0; DIGEST_LEN];
    let groups = ORDER
        .iter()
        .map(|[x, y, z]| u32::from_be_bytes([0, c[*x], c[*y], c[*z]]));
    let last = u32::from_be_bytes([0, 0, c[31], c[30]]);
    for (four, mut bits) in out.chunks_mut(4).zip(groups.chain([last])) {
        for to in four {
            *to = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
    }
    out
}

/// Fuzz target: bytes that are no hash are no hash, and the work is bounded.
pub fn fuzz_crypt(data: &[u8]) {
    // Never more than the default rounds here: a run should do many inputs.
    if parse(data).is_none_or(|(rounds, ..)| rounds <= ROUNDS) {
        assert!(!verify(data, b"a password that nobody has") || is_stored(data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_sha_crypt_for_the_salts_that_crypt_takes() {
        // crypt(3) of glibc with $5$rounds=5000$.
        let cases: [(&[u8], &[u8], &[u8]); 2] = [
            (
                b"secret",
                b"abcdefghijklmnop",
                b"i7zHaTeYqXlesRXJ8dXj6o.MEFQdzfIJpJpcWAtszs6",
            ),
            (
                b"A longer password than thirty-two bytes, to be sure",
                b"0123456789abcdef",
                b"rn7csIi2bZA.CLZqPb1kvGXgt.MTRcu1e88lQwD/ek1",
            ),
        ];
        for (password, salt, want) in cases {
            let got = digest(password, salt, 5000).expect("short enough");
            assert_eq!(got, want, "{}", String::from_utf8_lossy(&got));
        }
    }

    #[test]
    fn hashes_of_a_real_server_are_verified() {
        // mysql.user.authentication_string of MySQL 9.7, which makes 10,000 rounds unless told
        // otherwise.
        let cases = [
            (
                &b"secret"[..],
                "24412430304124533E546B7B6C501F014235701D035F533A7136747067304C74654A436B2E553257635739483271787679786E546C702F56657153544833526330413051622E",
            ),
            (
                b"A longer password than thirty-two bytes, to be sure",
                "24412430304124734051681E60671251284D3406312C464B54391B70375939564E76472F6D622E6358654E6B3561335A7836326B755361426C62756574454F78347342515437",
            ),
        ];
        for (password, hex) in cases {
            let stored: Vec<u8> = (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex"))
                .collect();
            assert!(verify(&stored, password));
            assert!(!verify(&stored, b"other"));
        }
    }

    #[test]
    fn a_created_hash_verifies_its_password_and_no_other() {
        let stored = create(b"secret", *b"\x00\x24\xff0123456789abcdefg").expect("short enough");
        assert_eq!(stored.len(), 70);
        assert!(stored.starts_with(b"$A$005$") && is_stored(&stored));
        assert!(verify(&stored, b"secret"));
        assert!(!verify(&stored, b"Secret"));
        assert!(!verify(&stored, b""));
    }

    #[test]
    fn a_verification_in_pieces_ends_like_the_whole() {
        let stored = create(b"secret", [b'x'; SALT_LEN]).expect("short enough");
        for (password, is) in [(&b"secret"[..], true), (b"other", false)] {
            for piece in [1, 7, 4999, 5000, 9000] {
                let mut all = Verification::new(&stored, password).expect("a hash");
                let mut pieces = 1;
                let answer = loop {
                    match all.go_on(piece) {
                        Some(answer) => break answer,
                        None => pieces += 1,
                    }
                };
                assert_eq!((answer, pieces), (is, ROUNDS.div_ceil(piece)), "{piece}");
            }
        }
    }

    #[test]
    fn what_is_no_hash_verifies_nothing() {
        for text in [
            &b""[..],
            b"$A$",
            b"$A$005$short",
            b"$A$zzz$01234567890123456789i7zHaTeYqXlesRXJ8dXj6o.MEFQdzfIJpJpcWAtszs6",
            b"$A$\xff\xff\xff$x",
        ] {
            assert!(!is_stored(text) && !verify(text, b""), "{text:?}");
        }
        assert!(
            create(&[b'x'; 257], [1; 20]).is_none(),
            "work grows with the password"
        );
    }
}
