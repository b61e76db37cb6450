//! MariaDB's `client_ed25519`: the client signs the server's nonce with a key that is made of the
//! password.
//!
//! <https://mariadb.com/kb/en/authentication-plugin-ed25519/> It is Ed25519 (RFC 8032), but what is
//! hashed to the secret scalar is the password, of any length, and not a seed of 32 bytes.

use crate::auth;
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha512};

/// Bytes that are signed.
pub type Nonce = [u8; 32];

fn key(password: &[u8]) -> (ExpandedSecretKey, VerifyingKey) {
    let secret = ExpandedSecretKey::from_bytes(&Sha512::digest(password).into());
    let public = VerifyingKey::from(&secret);
    (secret, public)
}

/// Returns the public key of a password, which an account stores.
#[must_use]
pub fn public(password: &[u8]) -> [u8; 32] {
    key(password).1.to_bytes()
}

/// The client's answer.
#[must_use]
pub fn sign(password: &[u8], nonce: &Nonce) -> [u8; 64] {
    let (secret, public) = key(password);
    raw_sign::<Sha512>(&secret, nonce, &public).to_bytes()
}

/// Checks an answer.
#[must_use]
pub fn verify(password: &[u8], nonce: &Nonce, response: &[u8]) -> bool {
    let Ok(signature) = Signature::from_slice(response) else {
        return false;
    };
    key(password).1.verify_strict(nonce, &signature).is_ok()
}

/// The nonce that a connection has for this plugin, which is longer than the one of its greeting
/// and can be foretold only by who knows that one.
#[must_use]
pub fn nonce(of_the_greeting: &auth::Nonce) -> Nonce {
    auth::sha256(&[b"client_ed25519", of_the_greeting])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_password_is_the_one_that_mariadb_has_for_it() {
        // The account that MariaDB's manual makes with the password "secret":
        // ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY
        let wanted = [
            0x64, 0x88, 0x14, 0x44, 0x45, 0x20, 0xe4, 0xf5, 0x60, 0x43, 0xa2, 0xec, 0x92, 0x15,
            0xe6, 0x3b, 0xe7, 0x99, 0x2d, 0x2d, 0x27, 0x0b, 0xc6, 0xde, 0xe8, 0x73, 0xe3, 0x61,
            0x64, 0x78, 0x60, 0x96,
        ];
        assert_eq!(public(b"secret"), wanted);
    }

    #[test]
    fn an_answer_is_bound_to_its_nonce_and_its_password() {
        let nonce = nonce(b"abcdefghijKLMNOPQRST");
        for password in [&b""[..], b"secret", &[b'x'; 300]] {
            let answer = sign(password, &nonce);
            assert!(verify(password, &nonce, &answer));
            assert!(!verify(b"other", &nonce, &answer));
            assert!(!verify(password, &[7; 32], &answer));
            assert!(!verify(password, &nonce, &answer[..63]));
            assert!(!verify(password, &nonce, b""));
        }
    }
}
