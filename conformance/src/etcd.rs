//! An etcd of the test's own, of one node or several.

use crate::process::{Process, TempFolder, free_port};
use crate::servers::{in_path, tail, tls_files};
use crate::trials::soon;
use crate::watch::HANGS;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::{fs, io};

/// Nodes of one etcd. Dropping it kills them and removes their data.
pub struct Etcd {
    nodes: Vec<Node>,
    program: PathBuf,
    folder: TempFolder,
    /// Clients come over TLS, each with a certificate.
    secure: bool,
}

struct Node {
    client: u16,
    peer: u16,
    /// Where it says without TLS whether it is well.
    health: u16,
    process: Option<Process>,
}

impl Etcd {
    /// Starts so many nodes; the error says why there are none.
    pub fn start(count: usize) -> Result<Self, String> {
        Self::start_as(count, false)
    }

    /// Nodes that speak to clients over TLS, and to those only that show a certificate.
    pub fn start_secure(count: usize) -> Result<Self, String> {
        Self::start_as(count, true)
    }

    fn start_as(count: usize, secure: bool) -> Result<Self, String> {
        let missing = || "there is no etcd: scripts/setup.sh test".to_owned();
        let program = in_path("etcd").ok_or_else(missing)?;
        let folder = TempFolder::new("etcd").map_err(|error| error.to_string())?;
        let node = |_| {
            Ok::<_, String>(Node {
                client: free_port().map_err(|error| error.to_string())?,
                peer: free_port().map_err(|error| error.to_string())?,
                health: free_port().map_err(|error| error.to_string())?,
                process: None,
            })
        };
        let nodes = (0..count).map(node).collect::<Result<_, _>>()?;
        let mut etcd = Self {
            nodes,
            program,
            folder,
            secure,
        };
        if secure {
            tls_files(etcd.folder.path())?;
        }
        etcd.begin()?;
        Ok(etcd)
    }

    /// Starts the nodes that do not run, and waits until all answer.
    pub fn begin(&mut self) -> Result<(), String> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let tls = match self.secure {
            false => Vec::new(),
            true => vec![
                format!("--cert-file={}", file("server-cert.pem")),
                format!("--key-file={}", file("server-key.pem")),
                format!("--trusted-ca-file={}", file("ca.pem")),
                "--client-cert-auth".to_owned(),
            ],
        };
        let scheme = if self.secure { "https" } else { "http" };
        let peers: Vec<_> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(nth, node)| format!("n{nth}={}", url(node.peer)))
            .collect();
        for (nth, node) in self.nodes.iter_mut().enumerate() {
            if node.process.is_some() {
                continue;
            }
            let data = self.folder.path().join(format!("n{nth}"));
            let (client, peer) = (
                format!("{scheme}://127.0.0.1:{}", node.client),
                url(node.peer),
            );
            let mut arguments = vec![
                format!("--name=n{nth}"),
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={}", peers.join(",")),
                "--heartbeat-interval=50".to_owned(),
                "--election-timeout=500".to_owned(),
                "--unsafe-no-fsync".to_owned(),
                format!("--listen-metrics-urls={}", url(node.health)),
            ];
            arguments.extend_from_slice(&tls);
            let log = self.folder.path().join("log");
            let started = Process::start(&self.program, &arguments, &log);
            node.process = Some(started.map_err(|error| error.to_string())?);
        }
        for node in &self.nodes {
            let answers = || self.answers(node).map(|answers| answers.to_string());
            soon("true", answers)
                .map_err(|why| format!("{why}\n{}", tail(&self.folder.path().join("log"))))?;
        }
        Ok(())
    }

    fn answers(&self, node: &Node) -> Result<bool, String> {
        let ask = || {
            let mut stream = TcpStream::connect(("127.0.0.1", node.health))?;
            stream.set_read_timeout(Some(HANGS))?;
            stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            Ok::<_, io::Error>(said)
        };
        Ok(ask().is_ok_and(|said| said.contains("true")))
    }

    /// Value of `admin-cluster_store` for this etcd.
    pub fn store(&self) -> String {
        let hosts: Vec<_> = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.client))
            .collect();
        let (hosts, file) = (hosts.join(","), |name: &str| self.file(name));
        match self.secure {
            false => format!("etcd://{hosts}/shop"),
            true => format!(
                "etcds://{hosts}/shop?ca={}&cert={}&key={}",
                file("ca.pem"),
                file("client-cert.pem"),
                file("client-key.pem")
            ),
        }
    }

    /// Path of one of its files.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// kill -9 of one node.
    pub fn kill(&mut self, nth: usize) {
        if let Some(mut process) = self.nodes[nth].process.take() {
            process.kill();
        }
    }

    /// kill -9 of all.
    pub fn kill_all(&mut self) {
        (0..self.nodes.len()).for_each(|nth| self.kill(nth));
    }

    /// Nothing is left of what it had; they do not run.
    pub fn wipe(&mut self) -> Result<(), String> {
        self.kill_all();
        for nth in 0..self.nodes.len() {
            let data = self.folder.path().join(format!("n{nth}"));
            fs::remove_dir_all(data).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
