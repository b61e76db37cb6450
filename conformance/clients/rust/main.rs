//! Runs scenarios through mysql_async and prints all that the client can see.
//!
//! Each line that it reads is `HOST PORT USER PASSWORD SCENARIO`; what the client saw ends with a
//! line `## end`, here and among the complaints.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{
    ChangeUserOpts, Compression, Conn, Error, OptsBuilder, Params, QueryResult, SslOpts, Statement,
    Value, WhiteListFsHandler,
};

/// Which files it may read for a server.
const FILES: [&str; 5] = [
    "three.txt",
    "ragged.txt",
    "empty.txt",
    "large.txt",
    "no-such-file.txt",
];

type Outcome = Result<(), Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for order in std::io::stdin().lines() {
        let order = order.expect("an order can be read");
        let words: Vec<&str> = order.splitn(5, ' ').collect();
        let [host, port, user, password, path] = words.as_slice() else {
            panic!("{order} is no order")
        };
        let mut client = Client {
            host: (*host).to_owned(),
            port: port.parse().expect("the port is a number"),
            user: (*user).to_owned(),
            password: (*password).to_owned(),
            conn: None,
            prepared: HashMap::new(),
        };
        client.play(path).await;
        println!("## end");
        eprintln!("## end");
    }
}

struct Client {
    host: String,
    port: u16,
    user: String,
    password: String,
    conn: Option<Conn>,
    prepared: HashMap<String, Statement>,
}

impl Client {
    async fn play(&mut self, path: &str) {
        println!("## {}", path.rsplit('/').next().unwrap_or(path));
        let text = std::fs::read_to_string(path).expect("the scenario can be read");
        let mut lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        if !lines
            .first()
            .is_some_and(|line| line.starts_with("connect"))
        {
            lines.insert(0, "connect database=conf tls=off");
        }
        for line in lines {
            println!("> {line}");
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            match self.step(verb, rest).await {
                Ok(true) => println!("  ok"),
                Ok(false) => println!("  this client has no such call"),
                Err(Error::Server(error)) => {
                    println!("  error {} {} {}", error.code, error.state, error.message)
                }
                Err(error) => println!("  error {error}"),
            }
        }
        self.leave().await;
    }

    async fn leave(&mut self) {
        self.prepared.clear();
        if let Some(conn) = self.conn.take() {
            let _ = conn.disconnect().await;
        }
    }

    async fn connect(&mut self, options: &HashMap<&str, &str>) -> Outcome {
        self.leave().await;
        let set = |key: &str, usual: &str| options.get(key).copied().unwrap_or(usual).to_owned();
        let tls = (options.get("tls") == Some(&"on")).then(|| {
            SslOpts::default()
                .with_danger_accept_invalid_certs(true)
                .with_danger_skip_domain_validation(true)
        });
        let opts = OptsBuilder::default()
            .ip_or_hostname(self.host.clone())
            .tcp_port(self.port)
            .user(Some(set("user", &self.user)))
            .pass(Some(set("password", &self.password)))
            .db_name(Some(set("database", "")).filter(|name| !name.is_empty()))
            .prefer_socket(false)
            .max_allowed_packet(Some(64 << 20))
            .stmt_cache_size(0)
            .local_infile_handler(Some(WhiteListFsHandler::new(
                FILES.iter().filter(|_| !options.contains_key("infile")),
            )))
            .compression(options.get("compress").map(|_| Compression::default()))
            .ssl_opts(tls);
        self.conn = Some(Conn::new(opts).await?);
        Ok(())
    }

    async fn step(&mut self, verb: &str, rest: &str) -> Result<bool, Error> {
        let parts: Vec<&str> = rest.split(" :: ").collect();
        if verb == "connect" {
            let options = rest
                .split(' ')
                .filter_map(|part| part.split_once('='))
                .collect();
            self.connect(&options).await?;
            return Ok(true);
        }
        let Some(conn) = &mut self.conn else {
            return Err(Error::Other("not connected".into()));
        };
        let name = parts.first().copied().unwrap_or_default();
        match verb {
            "query" | "script" => show(conn.query_iter(rest).await?).await?,
            "prepare" => {
                let statement = conn.prep(parts.get(1).copied().unwrap_or_default()).await?;
                self.prepared.insert(name.to_owned(), statement);
            }
            "execute" => {
                let Some(statement) = self.prepared.get(name) else {
                    return Err(Error::Other("not prepared".into()));
                };
                let values: Vec<Value> = parts.iter().skip(1).map(|part| argument(part)).collect();
                let params = if values.is_empty() {
                    Params::Empty
                } else {
                    Params::Positional(values)
                };
                show(conn.exec_iter(statement, params).await?).await?;
            }
            "batch" => {
                let rows = parts
                    .iter()
                    .skip(1)
                    .map(|row| Params::Positional(row.split(" | ").map(argument).collect()));
                conn.exec_batch(name, rows.collect::<Vec<_>>()).await?;
                println!(
                    "  affected={} insert_id={:?}",
                    conn.affected_rows(),
                    conn.last_insert_id()
                );
            }
            "close" => match self.prepared.remove(name) {
                Some(statement) => conn.close(statement).await?,
                None => return Err(Error::Other("not prepared".into())),
            },
            "ping" => conn.ping().await?,
            // By statement: a transaction object of the library would borrow the connection.
            "begin" | "commit" | "rollback" => conn.query_drop(verb).await?,
            "autocommit" => {
                conn.query_drop(format!("SET autocommit = {}", u8::from(rest == "on")))
                    .await?
            }
            "use" => conn.query_drop(format!("USE `{rest}`")).await?,
            "reset" => println!("  done={}", conn.reset().await?),
            "change" => {
                let text = |at: usize| parts.get(at).map(|part| (*part).to_owned());
                let opts = ChangeUserOpts::new()
                    .with_user(text(0))
                    .with_pass(text(1))
                    .with_db_name(text(2));
                conn.change_user(opts).await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn argument(text: &str) -> Value {
    let (kind, rest) = text.trim().split_once(':').unwrap_or((text, ""));
    match kind {
        "i" => rest.parse::<i64>().map_or(Value::NULL, Value::from),
        "d" => rest.parse::<f64>().map_or(Value::NULL, Value::from),
        "b" => {
            let digits: Vec<u8> = rest
                .bytes()
                .filter_map(|digit| char::from(digit).to_digit(16))
                .map(|digit| digit as u8)
                .collect();
            Value::Bytes(
                digits
                    .chunks(2)
                    .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
                    .collect(),
            )
        }
        "L" => Value::Bytes(vec![b'x'; rest.parse().unwrap_or(0)]),
        "n" => Value::NULL,
        _ => Value::from(rest),
    }
}

async fn show<P: Protocol>(mut result: QueryResult<'_, '_, P>) -> Outcome {
    loop {
        let columns = result.columns();
        for column in columns.iter().flat_map(|columns| columns.iter()) {
            println!(
                "  column {} type={:?} flags={:?} length={} decimals={} charset={} table={}/{} org={} db={}",
                column.name_str(),
                column.column_type(),
                column.flags(),
                column.column_length(),
                column.decimals(),
                column.character_set(),
                column.table_str(),
                column.org_table_str(),
                column.org_name_str(),
                column.schema_str()
            );
        }
        while let Some(row) = result.next().await? {
            let words: Vec<String> = row.unwrap().iter().map(shown).collect();
            println!("  row {}", words.join(" | "));
        }
        println!(
            "  affected={} insert_id={:?} warnings={} info={:?}",
            result.affected_rows(),
            result.last_insert_id(),
            result.warnings(),
            result.info()
        );
        if result.is_empty() {
            return Ok(());
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) if bytes.len() > 200 => {
            let mut hash = DefaultHasher::new();
            hash.write(bytes);
            format!("bytes len={} hash={:016x}", bytes.len(), hash.finish())
        }
        Value::Bytes(bytes) => format!("bytes \"{}\"", bytes.escape_ascii()),
        other => format!("{other:?}"),
    }
}
