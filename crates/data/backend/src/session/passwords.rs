//! With which password a server is logged in to: what the configuration knows, or what the client
//! has proven.
//!
//! While a password is being changed a user has two, and a server may know either. The one of the
//! row comes first, then the additional one; where only the second was right, the next login begins
//! with it.

use crate::session::want::Want;
use config::Password;
use net::Secret;
use wire::auth;

/// The passwords to try, at most two.
pub(crate) fn passwords(want: &Want<'_>) -> Vec<Secret> {
    let proven = want.secret;
    let Some(row) = want.snapshot.users.backend(want.user) else {
        return vec![proven.clone()];
    };
    let mut all: Vec<Secret> = Vec::with_capacity(2);
    for password in row.passwords() {
        let secret = match password {
            Password::Empty => Secret::None,
            Password::Clear(password) => Secret::Clear(password.to_string()),
            Password::Native(stage2) if is_of(proven, stage2) => proven.clone(),
            // It was compared when the client came in; once more would take milliseconds.
            Password::CachingSha2(_) if matches!(proven, Secret::Clear(_)) => proven.clone(),
            // A hash of what nobody has told us.
            Password::Native(_) | Password::CachingSha2(_) => continue,
        };
        if !all.contains(&secret) {
            all.push(secret);
        }
    }
    if all.is_empty() {
        all.push(proven.clone());
    }
    all
}

/// Whether the hash is of this password.
fn is_of(secret: &Secret, stage2: &[u8; 20]) -> bool {
    match secret {
        Secret::None | Secret::Relayed => false,
        Secret::Clear(password) => auth::native_stage2(password.as_bytes()) == *stage2,
        Secret::NativeStage1(stage1) => auth::native_stage2_of(stage1) == *stage2,
    }
}

/// Whether the server said that the password is not the right one: another may be.
pub(crate) fn is_wrong_password(code: u16) -> bool {
    // 1698 is MariaDB's for who gave none.
    matches!(code, 1045 | 1698)
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Snapshot, UserRow, Users, Variables};
    use std::sync::Arc;

    fn tried(password: &str, attributes: &str, proven: &Secret) -> Vec<Secret> {
        let row = UserRow {
            username: "app".into(),
            password: Some(password.into()),
            attributes: attributes.into(),
            ..UserRow::default()
        };
        let users = Users::build([row], &Variables::default()).unwrap();
        let snapshot = Snapshot {
            users: Arc::new(users),
            ..Snapshot::default()
        };
        let state = crate::State::new("", 45);
        let attributes = wire::connect_attributes::ConnectAttributes::default();
        let want = Want::of_nobody(("app", proven), &snapshot, &state, &attributes);
        passwords(&want)
    }

    fn clear(text: &str) -> Secret {
        Secret::Clear(text.into())
    }

    #[test]
    fn the_password_of_the_row_comes_first_whichever_the_client_gave() {
        let new = r#"{"additional_password":"6E6577"}"#;
        for proven in ["old", "new", "one that is no longer valid"] {
            assert_eq!(
                tried("old", new, &clear(proven)),
                [clear("old"), clear("new")]
            );
        }
        assert_eq!(tried("new", new, &clear("new")), [clear("new")]);
    }

    #[test]
    fn of_a_hash_only_what_the_client_has_proven_is_known() {
        let native = auth::native_text(&auth::native_stage2(b"old"));
        let old = Secret::NativeStage1(auth::native_stage1(b"old"));
        assert_eq!(tried(&native, "", &old), std::slice::from_ref(&old));
        assert_eq!(
            tried(&native, r#"{"additional_password":"6E6577"}"#, &old),
            [old.clone(), clear("new")]
        );
        assert_eq!(
            tried(
                &native,
                r#"{"additional_password":"6E6577"}"#,
                &clear("new")
            ),
            [clear("new")]
        );
        let crypt = format!("$A$005${}{}", "s".repeat(20), "h".repeat(43));
        assert_eq!(
            tried(&crypt, r#"{"additional_password":"6E6577"}"#, &clear("old")),
            [clear("old"), clear("new")]
        );
        // The row has changed since: what was proven is all there is.
        assert_eq!(tried(&auth::native_text(&[7; 20]), "", &old), [old]);
    }

    #[test]
    fn a_session_that_is_older_than_the_password_uses_the_one_of_now() {
        assert_eq!(tried("new", "", &clear("old")), [clear("new")]);
    }
}
