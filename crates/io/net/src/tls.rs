//! TLS over memory buffers: OpenSSL never sees a socket. Certificates, and what an operator may
//! set.

use crate::{NetError, keys};
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::{Padding, Rsa};
use openssl::ssl::{
    Ssl, SslAcceptor, SslConnector, SslContext, SslFiletype, SslMethod, SslStream, SslVerifyMode,
    SslVersion,
};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::store::{X509Lookup, X509StoreBuilder};
use openssl::x509::verify::X509VerifyFlags;
use openssl::x509::{X509, X509NameBuilder, X509NameEntryRef, X509NameRef};
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Where records end in a stream of them: five bytes of header, the last two of which say how long
/// the rest is.
#[derive(Debug, Default)]
struct Records {
    header: [u8; 5],
    /// Bytes of the header that have come.
    read: usize, // <= 5
    /// Bytes of the record that are still to come after its header.
    left: usize, // <= 65535
}

impl Records {
    fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let n = self.left.min(bytes.len());
                self.left -= n;
                bytes = &bytes[n..];
                continue;
            }
            let n = (self.header.len() - self.read).min(bytes.len());
            self.header[self.read..self.read + n].copy_from_slice(&bytes[..n]);
            self.read += n;
            bytes = &bytes[n..];
            if self.read == self.header.len() {
                self.read = 0;
                self.left = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
            }
        }
    }

    /// All records that have begun have come to their end.
    fn are_whole(&self) -> bool {
        self.read == 0 && self.left == 0
    }
}

/// Both directions of a TLS session, in memory.
#[derive(Debug, Default)]
struct Pipe {
    records: Records,
    incoming: Vec<u8>,
    /// Where OpenSSL reads next in `incoming`.
    at: usize,
    outgoing: Vec<u8>,
}

/// An idle session keeps no larger buffer than this.
const INCOMING_KEPT: usize = 512;

impl Pipe {
    /// Bytes that OpenSSL has not read yet.
    fn waiting(&self) -> usize {
        self.incoming.len() - self.at
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let waiting = &self.incoming[self.at..];
        if waiting.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = waiting.len().min(into.len());
        into[..n].copy_from_slice(&waiting[..n]);
        self.at += n;
        if self.at == self.incoming.len() {
            self.at = 0;
            if self.incoming.capacity() > INCOMING_KEPT {
                self.incoming = Vec::new();
            } else {
                self.incoming.clear();
            }
        }
        Ok(n)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One TLS session.
pub(crate) struct Session {
    stream: SslStream<Pipe>,
    is_server: bool,
    over: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("is_server", &self.is_server)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Goes on with the handshake; `true` when it is done.
    pub(crate) fn step(&mut self) -> Result<bool, NetError> {
        let result = if self.is_server {
            self.stream.accept()
        } else {
            self.stream.connect()
        };
        match result {
            Ok(()) => Ok(true),
            Err(error) if is_hungry(&error) => Ok(false),
            Err(error) => Err(NetError::Tls(self.reason(&error))),
        }
    }

    fn reason(&self, error: &openssl::ssl::Error) -> String {
        let verdict = self.stream.ssl().verify_result();
        if verdict != openssl::x509::X509VerifyResult::OK {
            return format!("the certificate is refused: {}", verdict.error_string());
        }
        let first = error.ssl_error().and_then(|stack| stack.errors().first());
        match first.and_then(openssl::error::Error::reason) {
            // The first bytes of a text, read as those of a record.
            Some("wrong version number") => "the other side does not speak TLS".to_owned(),
            _ => error.to_string(),
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let pipe = self.stream.get_mut();
        pipe.records.pass(bytes);
        pipe.incoming.extend_from_slice(bytes);
    }

    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.stream.get_mut().outgoing)
    }

    /// Returns what can be decrypted of what came; empty when more bytes are needed.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, NetError> {
        // What was sealed is longer than what is in it: no more than this can come out.
        let most = self.stream.ssl().pending() + self.stream.get_ref().waiting();
        if most == 0 {
            return Ok(Vec::new());
        }
        let mut plain = vec![0; most.min(rt::CHUNK_LEN)];
        match self.stream.ssl_read(&mut plain) {
            Ok(n) => {
                plain.truncate(n);
                Ok(plain)
            }
            Err(error) if is_hungry(&error) => Ok(Vec::new()),
            Err(error) if error.code() == openssl::ssl::ErrorCode::ZERO_RETURN => {
                self.over = true;
                Ok(Vec::new())
            }
            Err(error) => Err(NetError::Tls(error.to_string())),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Nothing is on its way: no byte unread, and no record of which a part has come (OpenSSL keeps
    /// that part, and does not tell).
    pub(crate) fn is_drained(&self) -> bool {
        let pipe = self.stream.get_ref();
        !self.over
            && pipe.waiting() == 0
            && pipe.records.are_whole()
            && self.stream.ssl().pending() == 0
    }

    /// Encrypts, and returns all that is to be sent.
    pub(crate) fn plain_to_send(&mut self, plain: &[u8]) -> Result<Vec<u8>, NetError> {
        let mut at = 0;
        while at < plain.len() {
            match self.stream.ssl_write(&plain[at..]) {
                Ok(n) => at += n,
                Err(error) => return Err(NetError::Tls(error.to_string())),
            }
        }
        Ok(self.take_out())
    }

    pub(crate) fn farewell(&mut self) -> Vec<u8> {
        // A peer that is already gone makes this fail; nobody is left to tell.
        let _gone = self.stream.shutdown();
        self.take_out()
    }

    /// The certificate that a client has shown.
    pub(crate) fn shown(&self) -> Option<Shown> {
        let ssl = self.stream.ssl();
        let certificate = ssl.peer_certificate()?;
        let verdict = ssl.verify_result();
        let refused = (verdict != openssl::x509::X509VerifyResult::OK)
            .then(|| verdict.error_string().to_owned());
        let names = certificate.subject_alt_names();
        let uris = names
            .iter()
            .flatten()
            .filter_map(|name| name.uri().map(str::to_owned))
            .collect();
        Some(Shown {
            refused,
            uris,
            subject: one_line(certificate.subject_name()),
            issuer: one_line(certificate.issuer_name()),
        })
    }

    /// SHA-256 of our own certificate.
    pub(crate) fn own_fingerprint(&self) -> Option<[u8; 32]> {
        let digest = self
            .stream
            .ssl()
            .certificate()?
            .digest(MessageDigest::sha256())
            .ok()?;
        digest.as_ref().try_into().ok()
    }

    pub(crate) fn info(&self) -> (String, String) {
        let ssl = self.stream.ssl();
        let cipher = ssl.current_cipher().map_or("", |cipher| cipher.name());
        (cipher.to_owned(), ssl.version_str().to_owned())
    }
}

/// A certificate that a client has shown, with the key to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Why it is not to be believed, if it is not.
    pub refused: Option<String>,
    /// URIs among its alternative names.
    pub uris: Vec<String>,
    /// Its subject, in the form `/C=SE/O=Shop/CN=till`.
    pub subject: String,
    /// Its issuer, likewise.
    pub issuer: String,
}

/// As servers write it in `REQUIRE SUBJECT`.
fn one_line(name: &X509NameRef) -> String {
    let entry = |entry: &X509NameEntryRef| {
        let kind = entry.object().nid().short_name().unwrap_or("?").to_owned();
        // A slash in a value shall not look like the next entry.
        let value = entry
            .data()
            .to_string()
            .map_or_else(|_| "?".to_owned(), |text| text.replace('/', "\\/"));
        format!("/{kind}={value}")
    };
    name.entries().map(entry).collect()
}

fn is_hungry(error: &openssl::ssl::Error) -> bool {
    use openssl::ssl::ErrorCode;
    error.code() == ErrorCode::WANT_READ || error.code() == ErrorCode::WANT_WRITE
}

/// Our side of TLS towards clients: certificate and key, and the key once more for
/// `caching_sha2_password` without TLS.
#[derive(Clone)]
pub struct Acceptor {
    context: SslContext,
    rsa: Option<Arc<Rsa<Private>>>,
    public_pem: Arc<[u8]>,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Acceptor {
    /// From PEM. A client that offers only old protocols than TLS 1.2 is refused.
    ///
    /// # Errors
    /// The certificate or the key cannot be read, or they do not belong together.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        Self::build(certificate, key, &[]).map_err(|error| error.to_string())
    }

    /// Makes an acceptor from PEM, as [`Self::new`], that asks clients for a certificate;
    /// [`crate::Shown`] says whether one of these authorities (PEM) has signed it. Without
    /// authorities nobody is asked.
    ///
    /// # Errors
    /// As [`Self::new`], or the authorities cannot be read.
    pub fn asking(certificate: &[u8], key: &[u8], authorities: &[u8]) -> Result<Self, String> {
        let authorities = X509::stack_from_pem(authorities)
            .map_err(|error| format!("the clients' authority: {error}"))?;
        Self::build(certificate, key, &authorities).map_err(|error| error.to_string())
    }

    fn build(certificate: &[u8], key: &[u8], authorities: &[X509]) -> Result<Self, ErrorStack> {
        let key = PKey::private_key_from_pem(key)?;
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server())?;
        builder.set_keylog_callback(|_, line| keys::has(line));
        let mut chain = X509::stack_from_pem(certificate)?.into_iter();
        if let Some(own) = chain.next() {
            builder.set_certificate(&own)?;
        }
        for issuer in chain {
            builder.add_extra_chain_cert(issuer)?;
        }
        builder.set_private_key(&key)?;
        builder.check_private_key()?;
        // Old but common clients (5.7) use the CBC suites of TLS 1.2.
        builder.set_cipher_list("DEFAULT:!aNULL:!eNULL:!EXPORT:!RC4:!3DES")?;
        builder.set_verify(SslVerifyMode::NONE);
        if !authorities.is_empty() {
            let mut store = X509StoreBuilder::new()?;
            for authority in authorities {
                builder.add_client_ca(authority)?;
                store.add_cert(authority.clone())?;
            }
            builder.set_verify_cert_store(store.build())?;
            // Most users need none, whatever it says: the verdict is looked at where one is needed.
            builder.set_verify_callback(SslVerifyMode::PEER, |_, _| true);
            builder.set_session_id_context(b"clients")?;
        }
        let rsa = key.rsa().ok();
        let public_pem = match &rsa {
            Some(rsa) => rsa.public_key_to_pem()?,
            None => Vec::new(),
        };
        Ok(Self {
            context: builder.build().into_context(),
            rsa: rsa.map(Arc::new),
            public_pem: public_pem.into(),
        })
    }

    /// A new connection's side of TLS, for who brings the stream. Nobody is asked for a certificate:
    /// a browser would have a person choose one.
    ///
    /// # Errors
    /// OpenSSL has no memory.
    pub fn ssl(&self) -> Result<Ssl, String> {
        let mut ssl = Ssl::new(&self.context).map_err(|error| error.to_string())?;
        ssl.set_verify(SslVerifyMode::NONE);
        Ok(ssl)
    }

    pub(crate) fn begin(&self) -> Result<Session, NetError> {
        let ssl = Ssl::new(&self.context).map_err(|error| NetError::Tls(error.to_string()))?;
        let stream = SslStream::new(ssl, Pipe::default())
            .map_err(|error| NetError::Tls(error.to_string()))?;
        Ok(Session {
            stream,
            is_server: true,
            over: false,
        })
    }

    /// The public key in PEM that `caching_sha2_password` sends to clients without TLS; empty when
    /// the key is not RSA.
    pub(crate) fn public_pem(&self) -> &[u8] {
        &self.public_pem
    }

    /// Opens what a client sealed with that key.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let rsa = self.rsa.as_ref()?;
        let mut out = vec![0; rsa.size() as usize];
        if sealed.len() != out.len() {
            return None;
        }
        let n = rsa
            .private_decrypt(sealed, &mut out, Padding::PKCS1_OAEP)
            .ok()?;
        out.truncate(n);
        Some(out)
    }
}

/// Seals a password for a server, with the public key that it sent.
pub(crate) fn seal(public_pem: &[u8], secret: &[u8]) -> Result<Vec<u8>, NetError> {
    let seal = || -> Result<Vec<u8>, ErrorStack> {
        let rsa = Rsa::public_key_from_pem(public_pem)?;
        let mut out = vec![0; rsa.size() as usize];
        let n = rsa.public_encrypt(secret, &mut out, Padding::PKCS1_OAEP)?;
        out.truncate(n);
        Ok(out)
    };
    seal().map_err(|error| NetError::Tls(format!("the server's public key: {error}")))
}

/// Settings of the operator for TLS towards a server: `mysql-ssl_p2s_*` or a row of
/// `mysql_servers_ssl_params`. Empty means unset.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[allow(
    missing_docs,
    reason = "named as the columns of mysql_servers_ssl_params"
)]
pub struct Settings {
    pub ca: String,
    pub capath: String,
    pub cert: String,
    pub key: String,
    pub cipher: String,
    pub crl: String,
    pub crlpath: String,
    /// `TLSv1.2`, `TLSv1.3`, …; those named are allowed, all when empty.
    pub versions: Vec<String>,
}

/// Our side of TLS towards servers.
#[derive(Clone)]
pub struct Connector {
    connector: SslConnector,
    is_named: bool,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    /// Reads the files that the settings name. With a CA the server's certificate must chain to it;
    /// without one any is taken, as ProxySQL and `--ssl-mode=REQUIRED` do.
    ///
    /// # Errors
    /// Says which file or list cannot be used, and why.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let said = |what: &str, value: &str| {
            let (what, value) = (what.to_owned(), value.to_owned());
            move |error: ErrorStack| format!("{what} '{value}' cannot be used: {}", plain(&error))
        };
        let mut builder =
            SslConnector::builder(SslMethod::tls_client()).map_err(|error| error.to_string())?;
        builder.set_keylog_callback(|_, line| keys::has(line));
        builder.set_verify(SslVerifyMode::NONE);
        if !settings.ca.is_empty() {
            builder
                .set_ca_file(&settings.ca)
                .map_err(said("ssl_ca", &settings.ca))?;
            builder.set_verify(SslVerifyMode::PEER);
        }
        if !settings.capath.is_empty() {
            let lookup = builder.cert_store_mut().add_lookup(X509Lookup::hash_dir());
            lookup
                .and_then(|lookup| lookup.add_dir(&settings.capath, SslFiletype::PEM))
                .map_err(said("ssl_capath", &settings.capath))?;
            builder.set_verify(SslVerifyMode::PEER);
        }
        if !settings.cert.is_empty() {
            builder
                .set_certificate_chain_file(&settings.cert)
                .map_err(said("ssl_cert", &settings.cert))?;
        }
        if !settings.key.is_empty() {
            builder
                .set_private_key_file(&settings.key, SslFiletype::PEM)
                .map_err(said("ssl_key", &settings.key))?;
        }
        if !settings.crl.is_empty() {
            let lookup = builder.cert_store_mut().add_lookup(X509Lookup::file());
            lookup
                .and_then(|lookup| lookup.load_crl_file(&settings.crl, SslFiletype::PEM))
                .map_err(said("ssl_crl", &settings.crl))?;
        }
        if !settings.crlpath.is_empty() {
            let lookup = builder.cert_store_mut().add_lookup(X509Lookup::hash_dir());
            lookup
                .and_then(|lookup| lookup.add_dir(&settings.crlpath, SslFiletype::PEM))
                .map_err(said("ssl_crlpath", &settings.crlpath))?;
        }
        if !settings.crl.is_empty() || !settings.crlpath.is_empty() {
            let flags = X509VerifyFlags::CRL_CHECK;
            builder
                .verify_param_mut()
                .set_flags(flags)
                .map_err(said("ssl_crl", &settings.crl))?;
        }
        if !settings.cipher.is_empty() {
            set_ciphers(&mut builder, &settings.cipher)?;
        }
        set_versions(&mut builder, &settings.versions)?;
        Ok(Self {
            connector: builder.build(),
            is_named: false,
        })
    }

    /// Tells servers by which name they are meant, and takes a certificate that is verified only if
    /// it is for that name or address, as HTTPS demands.
    #[must_use]
    pub fn named(mut self) -> Self {
        self.is_named = true;
        self
    }

    pub(crate) fn begin(&self, host: &str) -> Result<Session, NetError> {
        let begin = || -> Result<Session, ErrorStack> {
            let configured = self
                .connector
                .configure()?
                .verify_hostname(self.is_named)
                .use_server_name_indication(self.is_named);
            let ssl = configured.into_ssl(host)?;
            Ok(Session {
                stream: SslStream::new(ssl, Pipe::default())?,
                is_server: false,
                over: false,
            })
        };
        begin().map_err(|error| NetError::Tls(error.to_string()))
    }
}

/// Words for what went wrong first, the system's or OpenSSL's, without its numbers and places.
fn plain(error: &ErrorStack) -> String {
    // Set in what is an `errno`.
    const OF_THE_SYSTEM: std::ffi::c_ulong = 0x8000_0000;
    let Some(first) = error.errors().first() else {
        return error.to_string();
    };
    let code = first.code();
    if code & OF_THE_SYSTEM != 0 {
        return io::Error::from_raw_os_error((code & !OF_THE_SYSTEM) as i32).to_string();
    }
    first
        .reason()
        .map_or_else(|| error.to_string(), str::to_owned)
}

/// A list of suites of TLS 1.2 and older restricts the session to those versions, unless suites of
/// 1.3 are named as well: an operator who asks for `ECDHE-RSA-AES256-SHA` means it (A6).
fn set_ciphers(builder: &mut openssl::ssl::SslConnectorBuilder, list: &str) -> Result<(), String> {
    let (new, old): (Vec<&str>, Vec<&str>) =
        list.split(':').partition(|suite| suite.starts_with("TLS_"));
    let said = |error: ErrorStack| format!("ssl_cipher '{list}' cannot be used: {error}");
    if !old.is_empty() {
        builder.set_cipher_list(&old.join(":")).map_err(said)?;
    }
    if new.is_empty() {
        builder
            .set_max_proto_version(Some(SslVersion::TLS1_2))
            .map_err(said)?;
    } else {
        builder.set_ciphersuites(&new.join(":")).map_err(said)?;
        if old.is_empty() {
            builder
                .set_min_proto_version(Some(SslVersion::TLS1_3))
                .map_err(said)?;
        }
    }
    Ok(())
}

fn set_versions(
    builder: &mut openssl::ssl::SslConnectorBuilder,
    versions: &[String],
) -> Result<(), String> {
    let mut known = Vec::new();
    for name in versions {
        known.push(match name.as_str() {
            "TLSv1" => (1, SslVersion::TLS1),
            "TLSv1.1" => (2, SslVersion::TLS1_1),
            "TLSv1.2" => (3, SslVersion::TLS1_2),
            "TLSv1.3" => (4, SslVersion::TLS1_3),
            other => return Err(format!("tls_version '{other}' is not known")),
        });
    }
    let said = |error: ErrorStack| format!("tls_version: {error}");
    if let Some((_, lowest)) = known.iter().min_by_key(|(order, _)| *order) {
        builder.set_min_proto_version(Some(*lowest)).map_err(said)?;
    }
    if let Some((_, highest)) = known.iter().max_by_key(|(order, _)| *order) {
        builder
            .set_max_proto_version(Some(*highest))
            .map_err(said)?;
    }
    Ok(())
}

/// PEM files made for a proxy that was given none.
#[derive(Debug)]
pub struct SelfSigned {
    /// Certificate of the authority.
    pub ca: Vec<u8>,
    /// Certificate of the proxy, signed by it.
    pub certificate: Vec<u8>,
    /// Key of the proxy.
    pub key: Vec<u8>,
}

impl SelfSigned {
    /// Makes an authority and a certificate that it signed, valid for ten years.
    ///
    /// # Errors
    /// OpenSSL's words.
    pub fn generate() -> Result<Self, String> {
        Self::make().map_err(|error| format!("no certificate could be made: {error}"))
    }

    fn make() -> Result<Self, ErrorStack> {
        let ca_key = PKey::from_rsa(Rsa::generate(2048)?)?;
        let ca = certificate("Millrace_Auto_Generated_CA_Certificate", &ca_key, None)?;
        let key = PKey::from_rsa(Rsa::generate(2048)?)?;
        let own = certificate(
            "Millrace_Auto_Generated_Server_Certificate",
            &key,
            Some((&ca, &ca_key)),
        )?;
        Ok(Self {
            ca: ca.to_pem()?,
            certificate: own.to_pem()?,
            key: key.private_key_to_pem_pkcs8()?,
        })
    }
}

fn certificate(
    name: &str,
    key: &PKey<Private>,
    issuer: Option<(&X509, &PKey<Private>)>,
) -> Result<X509, ErrorStack> {
    let mut subject = X509NameBuilder::new()?;
    subject.append_entry_by_text("CN", name)?;
    let subject = subject.build();
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    let mut serial = BigNum::new()?;
    serial.rand(127, MsbOption::MAYBE_ZERO, false)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(&subject)?;
    builder.set_issuer_name(issuer.map_or(&subject, |(ca, _)| ca.subject_name()))?;
    builder.set_pubkey(key)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(3650)?)?;
    if issuer.is_some() {
        let names = SubjectAlternativeName::new()
            .dns("localhost")
            .ip("127.0.0.1")
            .build(&builder.x509v3_context(None, None))?;
        builder.append_extension(names)?;
    } else {
        builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
    }
    builder.sign(
        issuer.map_or(key, |(_, ca_key)| ca_key),
        MessageDigest::sha256(),
    )?;
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_whole_only_at_their_ends() {
        let stream = [
            &[23u8, 3, 3, 0, 4, 1, 2, 3, 4][..],
            &[21, 3, 3, 1, 0],
            &[9; 256],
            &[23, 3, 3, 0, 0],
        ]
        .concat();
        let ends = [9, 9 + 5 + 256, stream.len()];
        for step in [1, 2, 3, 7, 100] {
            let mut records = Records::default();
            let mut at = 0;
            for bytes in stream.chunks(step) {
                records.pass(bytes);
                at += bytes.len();
                assert_eq!(
                    records.are_whole(),
                    ends.contains(&at),
                    "after {at} bytes in steps of {step}"
                );
            }
        }
    }
}
