//! Proofs of a password: the arithmetic of mysql_native_password, caching_sha2_password and
//! sha256_password.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods_native_password_authentication.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>
//! RSA itself is done where OpenSSL is (`io/net`); the hash that is stored in accounts is in
//! [`crate::crypt`].

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The random bytes that an answer is bound to.
pub type Nonce = [u8; 20];

/// Authentication plugins by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// SHA-1 challenge and response.
    MysqlNative,
    /// SHA-256 challenge and response, or the password itself over something safe.
    CachingSha2,
    /// The password itself; over TLS only.
    ClearPassword,
    /// The password itself, over TLS or encrypted with the server's RSA key.
    Sha256,
    /// MariaDB's signatures.
    Ed25519,
}

impl Plugin {
    /// Name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MysqlNative => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::ClearPassword => "mysql_clear_password",
            Self::Sha256 => "sha256_password",
            Self::Ed25519 => "client_ed25519",
        }
    }

    /// The plugin of this name, if we know it.
    pub fn by_name(name: &str) -> Option<Self> {
        [
            Self::MysqlNative,
            Self::CachingSha2,
            Self::ClearPassword,
            Self::Sha256,
            Self::Ed25519,
        ]
        .into_iter()
        .find(|p| p.name() == name)
    }
}

/// caching_sha2_password, server to client: the hash was in the server's cache and the answer was
/// right; an OK follows.
pub const FAST_OK: u8 = 3;
/// caching_sha2_password, server to client: send the password itself (over TLS, or encrypted with
/// RSA).
pub const FULL: u8 = 4;
/// caching_sha2_password, client to server: send me the RSA key.
pub const ASK_KEY_CACHING_SHA2: u8 = 2;
/// sha256_password, client to server: send me the RSA key.
pub const ASK_KEY_SHA256: u8 = 1;

/// Twenty bytes without zero and `$` from 20 random bytes: some clients and servers end a nonce at
/// a zero.
pub fn nonce(random: [u8; 20]) -> Nonce {
    // 0x01..=0x7F without '$': printable enough for the clients that treat it as a string.
    random.map(|b| match b & 0x7F {
        0 | b'$' => b'a' + (b >> 7),
        c => c,
    })
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut h = Sha1::new();
    parts.iter().for_each(|p| h.update(p));
    h.finalize().into()
}

pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut h = Sha256::new();
    parts.iter().for_each(|p| h.update(p));
    h.finalize().into()
}

/// Returns what a MariaDB server since 11.4 says in the OK that ends a login over TLS. Only who
/// knows what the server has of the password can make it. It names the certificate, so that a
/// client needs no authority to know whose that is. `known`: what the plugin has of the password,
/// SHA1(SHA1(password)) or the public key of `client_ed25519`. `nonce`: that of the greeting.
/// `certificate`: SHA-256 of our certificate. MariaDB's library for C compares with capital
/// letters.
/// <https://github.com/mariadb-corporation/mariadb-connector-c/blob/3.4/plugins/auth/my_auth.c>
#[must_use]
pub fn vouch(known: &[u8], nonce: &Nonce, certificate: &[u8; 32]) -> Vec<u8> {
    /// Which hash it is.
    const SHA256: u8 = 1;
    let mut out = vec![SHA256];
    out.extend(
        sha256(&[known, nonce, certificate])
            .iter()
            .flat_map(|byte| format!("{byte:02X}").into_bytes()),
    );
    out
}

fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// Compares in the same time wherever the difference is.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && std::hint::black_box(a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y))) == 0
}

/// SHA1(password).
pub fn native_stage1(password: &[u8]) -> [u8; 20] {
    sha1(&[password])
}

/// SHA1(SHA1(password)): what accounts store, in hexadecimal after a `*`.
pub fn native_stage2(password: &[u8]) -> [u8; 20] {
    native_stage2_of(&native_stage1(password))
}

/// Returns SHA1(SHA1(password)), which accounts store, from SHA1(password).
pub fn native_stage2_of(stage1: &[u8; 20]) -> [u8; 20] {
    sha1(&[stage1])
}

/// The client's answer: SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))); nothing for an empty
/// password.
pub fn native_scramble(password: &[u8], nonce: &Nonce) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    native_from_stage1(&native_stage1(password), nonce).to_vec()
}

/// The client's answer from SHA1(password), which a server learns when it verifies one.
pub fn native_from_stage1(stage1: &[u8; 20], nonce: &Nonce) -> [u8; 20] {
    xor(*stage1, sha1(&[nonce, &sha1(&[stage1])]))
}

/// Checks an answer against SHA1(SHA1(password)). If it is right, returns SHA1(password): with it
/// one can log in elsewhere as the same user without knowing the password.
pub fn native_verify(stage2: &[u8; 20], nonce: &Nonce, response: &[u8]) -> Option<[u8; 20]> {
    let stage1 = native_unscramble(stage2, nonce, response.try_into().ok()?);
    same(&sha1(&[&stage1]), stage2).then_some(stage1)
}

/// SHA1(password) of whoever made this answer, if it is the right one for SHA1(SHA1(password)).
pub fn native_unscramble(stage2: &[u8; 20], nonce: &Nonce, response: &[u8; 20]) -> [u8; 20] {
    xor(*response, sha1(&[nonce, stage2]))
}

/// SHA1(SHA1(password)) from the form `*` and 40 hexadecimal digits.
pub fn native_parse(text: &str) -> Option<[u8; 20]> {
    let hex = text.strip_prefix('*').filter(|h| h.len() == 40)?.as_bytes();
    let mut out = [0; 20];
    for (to, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
        let digit = |b: u8| char::from(b).to_digit(16);
        *to = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(out)
}

/// The form `*` and 40 upper-case hexadecimal digits.
pub fn native_text(stage2: &[u8; 20]) -> String {
    stage2.iter().fold(String::from("*"), |mut s, b| {
        use std::fmt::Write as _;
        write!(s, "{b:02X}").expect("writing to a String does not fail");
        s
    })
}

/// SHA256(SHA256(password)): what a server keeps in memory to verify fast answers.
pub fn sha2_stage2(password: &[u8]) -> [u8; 32] {
    sha256(&[&sha256(&[password])])
}

/// caching_sha2_password's fast answer: SHA256(password) XOR SHA256(SHA256(SHA256(password)) +
/// nonce); nothing for an empty password.
pub fn sha2_scramble(password: &[u8], nonce: &Nonce) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    xor(
        sha256(&[password]),
        sha256(&[&sha2_stage2(password), nonce]),
    )
    .to_vec()
}

/// Checks a fast answer against SHA256(SHA256(password)).
pub fn sha2_verify(stage2: &[u8; 32], nonce: &Nonce, response: &[u8]) -> bool {
    let Ok(response) = <[u8; 32]>::try_from(response) else {
        return false;
    };
    let stage1 = xor(response, sha256(&[stage2, nonce]));
    same(&sha256(&[&stage1]), stage2)
}

/// The password with its ending zero, XORed with the nonce over and over: what is encrypted with
/// RSA. The same function takes it off again (the zero stays).
pub fn xor_password(password: &[u8], nonce: &Nonce) -> Vec<u8> {
    xor_with(password.iter().copied().chain([0]), nonce)
}

/// Turns what RSA decrypted back into the password; `None` if it has no ending zero.
pub fn unxor_password(bytes: &[u8], nonce: &Nonce) -> Option<Vec<u8>> {
    clear_password(&xor_with(bytes.iter().copied(), nonce)).map(<[u8]>::to_vec)
}

fn xor_with(bytes: impl Iterator<Item = u8>, nonce: &Nonce) -> Vec<u8> {
    bytes
        .zip(nonce.iter().cycle())
        .map(|(b, n)| b ^ n)
        .collect()
}

/// A password sent in clear ends with a zero; this is what stands before it.
pub fn clear_password(payload: &[u8]) -> Option<&[u8]> {
    payload.strip_suffix(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &Nonce = b"abcdefghijKLMNOPQRST";

    #[test]
    fn a_native_answer_is_verified_and_gives_what_is_needed_to_log_in_elsewhere() {
        let stage2 = native_stage2(b"secret");
        // SELECT PASSWORD('secret')
        assert_eq!(
            native_text(&stage2),
            "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
        );
        assert_eq!(
            native_parse("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"),
            Some(stage2)
        );
        let answer = native_scramble(b"secret", NONCE);
        let stage1 = native_verify(&stage2, NONCE, &answer).expect("right password");
        assert_eq!(stage1, native_stage1(b"secret"));
        assert_eq!(native_from_stage1(&stage1, NONCE).to_vec(), answer);
        let other = b"ABCDEFGHIJKLMNOPQRST";
        assert_eq!(
            native_verify(&stage2, other, &answer),
            None,
            "an answer is bound to its nonce"
        );
        assert_eq!(native_verify(&stage2, NONCE, &answer[..19]), None);
        assert_eq!(native_verify(&stage2, NONCE, b""), None);
        assert_eq!(
            native_verify(&stage2, NONCE, &native_scramble(b"Secret", NONCE)),
            None
        );
        assert_eq!(native_scramble(b"", NONCE), b"");
    }

    #[test]
    fn what_is_no_native_hash_is_not_taken_for_one() {
        for text in [
            "",
            "*",
            "secret",
            "*14E65567ABDB5135D0CFD9A70B3032C179A49EE",
            "*14E65567ABDB5135D0CFD9A70B3032C179A49EEG",
            "*é4E65567ABDB5135D0CFD9A70B3032C179A49EE",
        ] {
            assert_eq!(native_parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_fast_answer_is_verified() {
        let stage2 = sha2_stage2(b"secret");
        let answer = sha2_scramble(b"secret", NONCE);
        assert_eq!(answer.len(), 32);
        assert!(sha2_verify(&stage2, NONCE, &answer));
        assert!(!sha2_verify(&stage2, b"ABCDEFGHIJKLMNOPQRST", &answer));
        assert!(!sha2_verify(
            &stage2,
            NONCE,
            &sha2_scramble(b"other", NONCE)
        ));
        assert!(!sha2_verify(&stage2, NONCE, b""));
        assert_eq!(sha2_scramble(b"", NONCE), b"");
    }

    #[test]
    fn a_password_comes_back_from_its_xor() {
        for password in [
            &b""[..],
            b"x",
            b"longer than twenty bytes, so the nonce repeats",
        ] {
            let hidden = xor_password(password, NONCE);
            assert_eq!(hidden.len(), password.len() + 1);
            assert_eq!(unxor_password(&hidden, NONCE).as_deref(), Some(password));
        }
        assert_eq!(unxor_password(b"", NONCE), None);
        assert_eq!(clear_password(b"abc\0"), Some(&b"abc"[..]));
        assert_eq!(clear_password(b"abc"), None);
    }

    #[test]
    fn a_nonce_has_neither_zeros_nor_dollars_nor_eighth_bits() {
        for b in 0..=255 {
            assert!(
                nonce([b; 20])
                    .iter()
                    .all(|n| matches!(n, 1..=127) && *n != b'$')
            );
        }
    }

    #[test]
    fn plugins_are_known_by_name() {
        assert_eq!(Plugin::by_name("client_ed25519"), Some(Plugin::Ed25519));
        assert_eq!(
            Plugin::by_name("caching_sha2_password").map(Plugin::name),
            Some("caching_sha2_password")
        );
        assert_eq!(Plugin::by_name("mysql_old_password"), None);
    }
}
