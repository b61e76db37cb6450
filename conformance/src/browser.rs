//! A browser of a few lines: pages over HTTPS, a cookie, forms with their tokens.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use openssl::ssl::{SslConnector, SslMethod, SslVerifyMode};

use crate::process::free_port;
use crate::proxy::Proxy;
use crate::trials::{expect, soon};
use crate::watch::HANGS;

/// Answer of the web page.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status of HTTP.
    pub status: u16,
    /// Lines of the head.
    pub head: String,
    /// Page behind the head.
    pub body: String,
}

impl Answer {
    /// Value of a header, by its name in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| line.starts_with(&format!("{name}:"));
        let line = self.head.lines().find(|line| of(line))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }
}

/// A browser that looks at the web page of one proxy.
#[derive(Debug, Clone)]
pub struct Browser {
    /// Where it is served, on 127.0.0.1.
    pub port: u16,
    cookie: String,
}

impl Browser {
    /// Has the page of a proxy served, and opens a browser before it.
    pub fn before(proxy: &Proxy) -> Result<Self, String> {
        let port = free_port().map_err(|error| error.to_string())?;
        proxy.admin(&format!(
            "SET admin-web_port = {port}; SET admin-web_enabled = 'true'; LOAD ADMIN VARIABLES TO RUNTIME"
        ))?;
        soon("true", || {
            Ok(TcpStream::connect(("127.0.0.1", port)).is_ok().to_string())
        })?;
        Ok(Self {
            port,
            cookie: String::new(),
        })
    }

    /// A browser that has logged in.
    pub fn logged_in(proxy: &Proxy, user: &str) -> Result<Self, String> {
        let mut browser = Self::before(proxy)?;
        let answer = browser.log_in(user, user)?;
        expect(answer.status == 303, || format!("{answer:?}"))?;
        Ok(browser)
    }

    /// Sends the form of the login, and keeps the cookie.
    pub fn log_in(&mut self, user: &str, password: &str) -> Result<Answer, String> {
        let answer = self.submit("/login", &[("user", user), ("password", password)])?;
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        }
        Ok(answer)
    }

    /// A page.
    pub fn get(&self, path: &str) -> Result<Answer, String> {
        self.ask("GET", path, &[], "")
    }

    /// A page that must be there.
    pub fn page(&self, path: &str) -> Result<String, String> {
        let answer = self.get(path)?;
        expect(answer.status == 200, || format!("{path}: {answer:?}"))?;
        Ok(answer.body)
    }

    /// The token of the forms of this visitor.
    pub fn token(&self) -> Result<String, String> {
        let page = self.page("/")?;
        let behind = page
            .split_once("name=\"token\" value=\"")
            .ok_or("no token")?;
        Ok(behind.1.split('"').next().unwrap_or_default().to_owned())
    }

    /// Sends a form from a page of the proxy.
    pub fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Result<Answer, String> {
        let origin = format!("https://127.0.0.1:{}", self.port);
        self.submit_from(Some(&origin), path, fields)
    }

    /// Sends a form from a page of somebody.
    pub fn submit_from(
        &self,
        origin: Option<&str>,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let pairs: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        let mut headers = vec![("Content-Type", "application/x-www-form-urlencoded")];
        headers.extend(origin.map(|origin| ("Origin", origin)));
        self.ask("POST", path, &headers, &pairs.join("&"))
    }

    /// Sends a request.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, String> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nCookie: {}\r\nContent-Length: {}\r\n",
            self.port,
            self.cookie,
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let said = said(self.port, &format!("{request}\r\n{body}"));
        let said = said.map_err(|error| format!("{method} {path}: {error}"))?;
        let (head, body) = said
            .split_once("\r\n\r\n")
            .ok_or_else(|| format!("{method} {path}: no head: {said:?}"))?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok(Answer {
            status: status.ok_or_else(|| format!("no status: {head}"))?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }
}

fn said(port: u16, request: &str) -> io::Result<String> {
    let mut connector = SslConnector::builder(SslMethod::tls_client())?;
    connector.set_verify(SslVerifyMode::NONE);
    let socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(HANGS))?;
    let stream = connector.build().connect("127.0.0.1", socket);
    let mut stream = stream.map_err(|error| io::Error::other(error.to_string()))?;
    // One that is refused may be answered, and not read to its end.
    let _refused = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&buffer[..read]),
            Err(_) if !answer.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A value of a form, as a browser encodes it.
#[must_use]
pub fn encoded(value: &str) -> String {
    value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
