//! Compression towards clients: what is offered, what is insisted on, and at which level they are
//! answered.

use crate::known::answer::Complaint;
use config::Variables;
use wire::caps;
use wire::caps::Caps;
use wire::frame::Algorithm;

/// The capabilities to offer.
pub(crate) fn offered(v: &Variables) -> Caps {
    let offers = |algorithm: Algorithm| {
        v.mysql_have_compress && list(v).any(|name| name == algorithm.name())
    };
    let zlib = if offers(Algorithm::Zlib) {
        caps::COMPRESS
    } else {
        0
    };
    let zstd = if offers(Algorithm::Zstd) {
        caps::ZSTD
    } else {
        0
    };
    zlib | zstd
}

/// Is a client refused that does not compress?
pub(crate) fn is_required(v: &Variables) -> bool {
    v.mysql_have_compress && list(v).all(|name| name != "uncompressed")
}

fn list(v: &Variables) -> impl Iterator<Item = &str> {
    v.mysql_protocol_compression_algorithms.split(',')
}

/// Returns the complaint for a client that is refused because it does not compress; the number and
/// the words are MySQL's.
pub(crate) fn missing() -> Complaint {
    Complaint::with(
        3922,
        "HY000",
        "Invalid compression algorithm 'uncompressed'.",
    )
}

/// The level of what a client is sent. Only of zstd may clients wish one: 0 is no wish.
pub(crate) fn level(v: &Variables, algorithm: Algorithm, wished: u8) -> i32 {
    let level = match (algorithm, wished) {
        (Algorithm::Zlib, _) => v.mysql_protocol_compression_level,
        (Algorithm::Zstd, 0) => v
            .mysql_server_compression_zstd_level
            .min(v.mysql_protocol_compression_zstd_level_max),
        (Algorithm::Zstd, wished) => {
            u64::from(wished).min(v.mysql_protocol_compression_zstd_level_max)
        }
    };
    i32::try_from(level).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Variables {
        Variables::build(pairs.iter().copied()).unwrap().0
    }

    #[test]
    fn clients_are_offered_what_the_list_names() {
        let algorithms = "mysql-protocol_compression_algorithms";
        assert_eq!(offered(&with(&[])), caps::COMPRESS | caps::ZSTD);
        assert_eq!(offered(&with(&[("mysql-have_compress", "false")])), 0);
        assert_eq!(offered(&with(&[(algorithms, "zstd")])), caps::ZSTD);
        assert_eq!(
            offered(&with(&[(algorithms, "zlib,uncompressed")])),
            caps::COMPRESS
        );
        assert!(!is_required(&with(&[])) && is_required(&with(&[(algorithms, "zlib,zstd")])));
        assert!(!is_required(&with(&[
            (algorithms, "zlib"),
            ("mysql-have_compress", "false")
        ])));
    }

    #[test]
    fn a_client_chooses_the_level_of_zstd_up_to_the_operators() {
        let v = with(&[
            ("mysql-protocol_compression_level", "2"),
            ("mysql-protocol_compression_zstd_level_max", "9"),
        ]);
        let levels = [0, 1, 9, 22].map(|wished| level(&v, Algorithm::Zstd, wished));
        assert_eq!((levels, level(&v, Algorithm::Zlib, 7)), ([3, 1, 9, 9], 2));
    }
}
