//! `mysql_servers_ssl_params`: TLS towards one server, or towards one server as one user.

use crate::refusal::Refusals;
use crate::{Refusal, SslParamsRow};
use hashbrown::HashMap;
use std::sync::Arc;

/// One row. An empty field means the `mysql-ssl_p2s_` variable of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SslParams {
    /// Server.
    pub hostname: Box<str>,
    /// Its port.
    pub port: u16,
    /// As whom it is logged in to; empty for everybody who has no row.
    pub username: Box<str>,
    /// File of authorities.
    pub ca: Box<str>,
    /// File of our certificate.
    pub cert: Box<str>,
    /// File of its key.
    pub key: Box<str>,
    /// Folder of authorities.
    pub capath: Box<str>,
    /// File of revoked certificates.
    pub crl: Box<str>,
    /// Folder of such files.
    pub crlpath: Box<str>,
    /// Ciphers in OpenSSL's notation.
    pub cipher: Box<str>,
    /// Versions separated by `,`; each is one of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3.
    pub tls_version: Box<str>,
    /// For the operator.
    pub comment: Box<str>,
}

/// Versions that can be asked for.
const TLS_VERSIONS: [&str; 4] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// All rows, by server.
#[derive(Debug, Default)]
pub(super) struct TlsTable {
    rows: Vec<Arc<SslParams>>,
    /// Positions in `rows`.
    by_server: HashMap<(Box<str>, u16), Vec<usize>, foldhash::fast::FixedState>,
}

impl TlsTable {
    pub(super) fn build(
        rows: impl IntoIterator<Item = SslParamsRow>,
        refused: &mut Vec<Refusal>,
    ) -> Self {
        let mut refusals = Refusals::of("mysql_servers_ssl_params");
        let mut table = Self::default();
        for row in rows {
            let key = || {
                format!(
                    "hostname '{}', port {}, username '{}'",
                    row.hostname, row.port, row.username
                )
            };
            let port = refusals.number(key, "port", row.port, (0, 65_535));
            if let Some(strange) =
                tls_versions(&row.tls_version).find(|word| !TLS_VERSIONS.contains(word))
            {
                let words = format!(
                    "must be a list of {}; '{strange}' is not",
                    TLS_VERSIONS.join(", ")
                );
                refusals.add(key, "tls_version", words);
            }
            let rows = table
                .by_server
                .entry((row.hostname.as_str().into(), port))
                .or_default();
            if rows
                .iter()
                .any(|&at| *table.rows[at].username == *row.username)
            {
                refusals.add(
                    key,
                    "hostname",
                    "has a row already with this port and username",
                );
            }
            rows.push(table.rows.len());
            table.rows.push(Arc::new(SslParams {
                hostname: row.hostname.into(),
                port,
                username: row.username.into(),
                ca: row.ssl_ca.into(),
                cert: row.ssl_cert.into(),
                key: row.ssl_key.into(),
                capath: row.ssl_capath.into(),
                crl: row.ssl_crl.into(),
                crlpath: row.ssl_crlpath.into(),
                cipher: row.ssl_cipher.into(),
                tls_version: row.tls_version.into(),
                comment: row.comment.into(),
            }));
        }
        refused.extend(refusals.into_list());
        table
    }

    fn server(&self, hostname: &str, port: u16) -> impl Iterator<Item = &Arc<SslParams>> {
        let found = self.by_server.get(&(Box::from(hostname), port));
        found.into_iter().flatten().map(|&at| &self.rows[at])
    }

    /// The row for everybody, and those for single users.
    pub(super) fn of_server(
        &self,
        hostname: &str,
        port: u16,
    ) -> (Option<Arc<SslParams>>, Box<[Arc<SslParams>]>) {
        let (everybody, users): (Vec<_>, Vec<_>) = self
            .server(hostname, port)
            .cloned()
            .partition(|params| params.username.is_empty());
        (everybody.into_iter().next(), users.into())
    }

    pub(super) fn most_specific(
        &self,
        hostname: &str,
        port: u16,
        username: &str,
    ) -> Option<&Arc<SslParams>> {
        let of_user = |name: &str| {
            self.server(hostname, port)
                .find(|params| *params.username == *name)
        };
        of_user(username).or_else(|| of_user(""))
    }

    pub(super) fn rows(&self) -> Vec<SslParamsRow> {
        let row = |params: &Arc<SslParams>| SslParamsRow {
            hostname: params.hostname.to_string(),
            port: params.port.into(),
            username: params.username.to_string(),
            ssl_ca: params.ca.to_string(),
            ssl_cert: params.cert.to_string(),
            ssl_key: params.key.to_string(),
            ssl_capath: params.capath.to_string(),
            ssl_crl: params.crl.to_string(),
            ssl_crlpath: params.crlpath.to_string(),
            ssl_cipher: params.cipher.to_string(),
            tls_version: params.tls_version.to_string(),
            comment: params.comment.to_string(),
        };
        self.rows.iter().map(row).collect()
    }
}

impl SslParams {
    /// The versions that are allowed; all if there is none.
    pub fn tls_versions(&self) -> impl Iterator<Item = &str> {
        tls_versions(&self.tls_version)
    }
}

fn tls_versions(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerRow, Servers};

    /// A8: a certificate of its own for every server, instead of the same files everywhere.
    #[test]
    fn the_row_that_names_the_user_goes_before_the_one_that_names_nobody() {
        let row = |port, username: &str, ca: &str| SslParamsRow {
            hostname: "db".into(),
            port,
            username: username.into(),
            ssl_ca: ca.into(),
            tls_version: "TLSv1.2, TLSv1.3".into(),
            ..SslParamsRow::default()
        };
        let rows = [
            row(3306, "", "all"),
            row(3306, "u", "only u"),
            row(3307, "u", "other"),
        ];
        let server = ServerRow {
            hostname: "db".into(),
            ..ServerRow::default()
        };
        let servers = Servers::build([server], [], rows.clone()).unwrap();
        let ca = |port, user| {
            servers
                .ssl_params("db", port, user)
                .map(|params| &*params.ca)
        };
        assert_eq!(ca(3306, "u"), Some("only u"));
        assert_eq!(ca(3306, "v"), Some("all"));
        assert_eq!(ca(3307, "v"), None);
        let server = &servers.hostgroup(0).unwrap().servers[0];
        assert_eq!(
            server.ssl_for("u").map(|params| &*params.ca),
            Some("only u")
        );
        assert_eq!(server.ssl_for("v").map(|params| &*params.ca), Some("all"));
        assert_eq!(
            server
                .ssl_for("v")
                .unwrap()
                .tls_versions()
                .collect::<Vec<_>>(),
            ["TLSv1.2", "TLSv1.3"]
        );
        assert_eq!(servers.ssl_params_rows(), rows);
    }
}
