//! What only proxies with the key can read: AES-256-GCM, with the place of a text bound to it.

use openssl::rand::rand_bytes;
use openssl::sha::sha256;
use openssl::symm::{Cipher, decrypt_aead, encrypt_aead};

/// Bytes of the number that is used once.
const NONCE: usize = 12;
/// Bytes that prove who has sealed it.
const TAG: usize = 16;
/// Bytes of the file of a key, at least.
const FILE_MIN: usize = 32;

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub struct Seal([u8; 32]);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The key that a file makes: 32 bytes of chance or more, in any form; blanks at its end do not
    /// count.
    ///
    /// # Errors
    /// That it is too short.
    pub fn of(file: &[u8]) -> Result<Self, String> {
        let file = file.trim_ascii_end();
        if file.len() < FILE_MIN {
            return Err(format!(
                "has {} bytes: a key has {FILE_MIN} or more",
                file.len()
            ));
        }
        Ok(Self(sha256(file)))
    }

    /// `place`: what it is and where; another one does not open it.
    ///
    /// # Errors
    /// No chance is to be had.
    pub fn seal(&self, place: &str, text: &[u8]) -> Result<Vec<u8>, String> {
        let mut sealed = vec![0; NONCE];
        rand_bytes(&mut sealed).map_err(|error| error.to_string())?;
        let (mut tag, cipher) = ([0; TAG], Cipher::aes_256_gcm());
        let nonce = Some(&sealed[..]);
        let body = encrypt_aead(cipher, &self.0, nonce, place.as_bytes(), text, &mut tag)
            .map_err(|error| error.to_string())?;
        sealed.extend_from_slice(&tag);
        sealed.extend_from_slice(&body);
        Ok(sealed)
    }

    /// The text, if it was sealed by this key for this place.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_at_checked(NONCE)?;
        let (tag, body) = rest.split_at_checked(TAG)?;
        let (cipher, place) = (Cipher::aes_256_gcm(), place.as_bytes());
        decrypt_aead(cipher, &self.0, Some(nonce), place, body, tag).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_and_the_place_open_it() {
        let (one, other) = (Seal::of(&[1; 32]).unwrap(), Seal::of(&[2; 32]).unwrap());
        let sealed = one.seal("mysql_users 7", b"secret").unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(
            one.open("mysql_users 7", &sealed).as_deref(),
            Some(&b"secret"[..])
        );
        assert_eq!(one.open("mysql_users 8", &sealed), None);
        assert_eq!(other.open("mysql_users 7", &sealed), None);
        for at in 0..sealed.len() {
            let mut broken = sealed.clone();
            broken[at] ^= 1;
            assert_eq!(one.open("mysql_users 7", &broken), None, "{at}");
            assert_eq!(one.open("mysql_users 7", &sealed[..at]), None, "{at}");
        }
        assert_ne!(one.seal("x", b"y"), one.seal("x", b"y"));
    }

    #[test]
    fn a_short_file_is_no_key() {
        assert!(Seal::of(b"0123456789\n").is_err());
        assert_eq!(
            Seal::of(&[b'k'; 32]),
            Seal::of(&[&[b'k'; 32][..], b"\n"].concat())
        );
    }
}
