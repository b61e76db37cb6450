//! A cluster of Galera: MariaDB servers with Debian's library, on loopback.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::process::{TempFolder, free_port};
use crate::servers::{self, Server, Start, Vendor};
use crate::trials::soon;

/// Debian's `galera-4`.
const LIBRARY: &str = "/usr/lib/galera/libgalera_smm.so";

/// Program by which a node gets what it lacks: always as write sets that another still has. A node begins with a
/// copy of the first one's data, so nothing larger has to go over. MariaDB finds the program by the
/// method's name.
const TRANSFER: &str = r#"#!/bin/sh
bypass=no
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --address) address=$2; shift ;;
        --datadir) data=$2; shift ;;
        --gtid) gtid=$2; shift ;;
        --bypass) bypass=yes ;;
    esac
    shift
done
case $role in
    joiner)
        mark=${data%/}/../transfer
        rm -f "$mark"
        echo "ready 127.0.0.1:1/$mark"
        until [ -e "$mark" ]; do sleep 0.05; done
        cat "$mark"
        ;;
    donor)
        [ $bypass = yes ] || exit 22
        mark=${address#*/}
        echo "$gtid" >"$mark.new" && mv "$mark.new" "$mark"
        echo "done $gtid"
        ;;
esac
"#;

/// A running cluster.
pub struct Galera {
    /// Its nodes; the first of them began it.
    pub nodes: Vec<Server>,
    /// Folder with what it starts with: a program, and data.
    _folder: TempFolder,
}

impl Galera {
    /// Why there is none on this machine.
    pub fn missing() -> Option<String> {
        (!Path::new(LIBRARY).exists())
            .then(|| "Galera is not here (apt-get install galera-4 brings it)".to_owned())
    }

    /// Starts so many nodes, with what this SQL does.
    pub fn start(many: usize, sql: &str) -> Result<Self, String> {
        let folder = TempFolder::new("galera").map_err(|error| error.to_string())?;
        let mut start = Start::of(Vendor::MariaDb)?;
        start.programs.server = with_transfer(folder.path(), &start.programs.server)
            .map_err(|error| error.to_string())?;
        let ports = (0..many).map(|_| Ports::free());
        let ports = ports
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| error.to_string())?;
        let members = ports
            .iter()
            .map(|ports| format!("127.0.0.1:{}", ports.group));
        let members = members.collect::<Vec<_>>().join(",");
        start.options = ports[0].options(&members);
        let begins = ["--wsrep-new-cluster".to_owned()];
        start.options.extend_from_slice(&begins);
        let mut first = Server::start_as(&start)?;
        until_synced(&first)?;
        first.root(sql)?;
        // The others begin with what it has, so that they lack nothing but what it writes from now.
        first.shut_down()?;
        start.data = folder.path().join("data");
        servers::copy(&first.data(), &start.data).map_err(|error| error.to_string())?;
        for own in ["galera.cache", "gvwstate.dat"] {
            let _not_there = fs::remove_file(start.data.join(own));
        }
        first.restart()?;
        until_synced(&first)?;
        let mut nodes = vec![first];
        for ports in &ports[1..] {
            start.options = ports.options(&members);
            let node = Server::start_as(&start)?;
            until_synced(&node)?;
            nodes.push(node);
        }
        // From now on it comes back as any other.
        nodes[0].without(&begins);
        Ok(Self {
            nodes,
            _folder: folder,
        })
    }

    /// Starts a node again that was killed, from where its data ends.
    pub fn restart(&mut self, node: usize) -> Result<(), String> {
        let node = &mut self.nodes[node];
        let said = node.run_with("--wsrep-recover")?;
        let position = said
            .rsplit_once("Recovered position: ")
            .and_then(|(_, after)| after.split_whitespace().next())
            .ok_or_else(|| format!("no position in:\n{said}"))?;
        node.restart_with(&[format!("--wsrep-start-position={position}")])?;
        until_synced(node)
    }
}

/// Ports of a node, besides the one for clients.
struct Ports {
    group: u16,
    transfer: u16,
}

impl Ports {
    fn free() -> io::Result<Self> {
        Ok(Self {
            group: free_port()?,
            transfer: free_port()?,
        })
    }

    fn options(&self, members: &str) -> Vec<String> {
        let Self { group, transfer } = self;
        // A node that is killed is given up after seconds, and one that only hangs, too.
        let library = format!(
            "gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{transfer};\
             gcache.size=16M;gcache.recover=no;pc.recovery=false;evs.keepalive_period=PT0.3S;\
             evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S"
        );
        [
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=1",
            "--wsrep-sst-method=millrace",
            &format!("--wsrep-provider={LIBRARY}"),
            &format!("--wsrep-cluster-address=gcomm://{members}"),
            &format!("--wsrep-node-address=127.0.0.1:{group}"),
            &format!("--wsrep-provider-options={library}"),
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

/// A program that starts the server so that it finds the one for [`TRANSFER`].
fn with_transfer(folder: &Path, server: &Path) -> io::Result<PathBuf> {
    let starts = format!(
        "#!/bin/sh\nPATH='{}':\"$PATH\" exec '{}' \"$@\"\n",
        folder.display(),
        server.display()
    );
    for (name, text) in [("wsrep_sst_millrace", TRANSFER), ("mariadbd", &starts)] {
        let path = folder.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    }
    Ok(folder.join("mariadbd"))
}

/// Waits until a node has all that the others have.
fn until_synced(node: &Server) -> Result<(), String> {
    let ask = || {
        let state = "SHOW STATUS LIKE 'wsrep_local_state_comment'";
        Ok(node
            .root(state)
            .is_ok_and(|said| said.contains("Synced"))
            .to_string())
    };
    soon("true", ask).map_err(|words| format!("not synced: {words}\n{}", node.log()))
}
