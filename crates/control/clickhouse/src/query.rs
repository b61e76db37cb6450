//! One question to ClickHouse: how it is put, and its end there if nobody waits for the answer.

use crate::{Force, errors};
use door::Refused;
use http::{Answer, Http, Lost, Place, Tls, escaped};
use rt::Rt;

/// Bytes of what ClickHouse says went wrong, or of an answer that is little, at most.
const WORDS_MAX: usize = 1 << 20;

/// As whom ClickHouse is asked, and how.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) place: Place,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: String,
    /// Settings, in order: later ones count.
    pub(crate) settings: Vec<(String, String)>,
}

impl Asker {
    /// As whom the port itself asks, for no user.
    pub(crate) fn of_the_port(force: &Force) -> Self {
        let v = &force.variables;
        Self {
            place: Place {
                host: v.clickhouse_hostname.to_string(),
                port: v.clickhouse_http_port as u16,
                tls: v.clickhouse_tls.then(|| Tls {
                    ca: v.clickhouse_tls_ca.to_string(),
                    ..Tls::default()
                }),
            },
            user: v.clickhouse_user.to_string(),
            password: v.clickhouse_password.to_string(),
            database: v.clickhouse_database.to_string(),
            settings: Vec::new(),
        }
    }

    /// JSON comes as its text from now on.
    pub(crate) fn wants_json_as_text(&mut self) {
        let name = "output_format_native_write_json_as_string".to_owned();
        self.settings.push((name, "1".to_owned()));
    }

    /// Lets a setting be no more than this; 0 is no limit, here and in ClickHouse.
    pub(crate) fn limit(&mut self, name: &str, max: i64) {
        if max <= 0 {
            return;
        }
        let last = self.settings.iter().rfind(|(known, _)| known == name);
        let wanted = last.and_then(|(_, value)| value.parse::<f64>().ok());
        if wanted.is_none_or(|wanted| wanted <= 0.0 || wanted > max as f64) {
            self.settings.push((name.to_owned(), max.to_string()));
        }
    }

    /// The target of a question whose answer comes in this format. `sql`: where the body is none.
    fn target(&self, id: &str, format: &str, sql: Option<&str>) -> String {
        let mut target = format!(
            "/?query_id={id}&default_format={format}&database={}",
            escaped(&self.database)
        );
        for (at, (name, value)) in self.settings.iter().enumerate() {
            let is_last = self.settings[at + 1..]
                .iter()
                .all(|(later, _)| later != name);
            if is_last {
                target += &format!("&{}={}", escaped(name), escaped(value));
            }
        }
        if let Some(sql) = sql {
            target += &format!("&query={}", escaped(sql));
        }
        target
    }

    /// Puts a question; its answer begins, or ClickHouse says no.
    pub(crate) async fn ask(
        &self,
        http: &mut Http,
        id: &str,
        format: &str,
        sql: &[u8],
    ) -> Result<Result<Answer, Refused>, Lost> {
        let target = self.target(id, format, None);
        let sent = http.ask(&target, &self.headers(), Some(sql)).await;
        self.answer(http, sent).await
    }

    /// Begins a question whose statement stands apart from its body, which follows in pieces.
    pub(crate) async fn begin(&self, http: &mut Http, id: &str, sql: &str) -> Result<(), Lost> {
        let target = self.target(id, "Native", Some(sql));
        http.ask(&target, &self.headers(), None).await
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [
            ("X-ClickHouse-User", self.user.as_str()),
            ("X-ClickHouse-Key", self.password.as_str()),
        ]
    }

    /// The beginning of an answer, or ClickHouse says no.
    pub(crate) async fn answer(
        &self,
        http: &mut Http,
        sent: Result<(), Lost>,
    ) -> Result<Result<Answer, Refused>, Lost> {
        // It may have said no before it has read all.
        let answer = match (http.answer().await, sent) {
            (Ok(answer), _) => answer,
            (Err(lost), Ok(())) | (Err(_), Err(lost)) => return Err(lost),
        };
        if answer.status == 200 {
            return Ok(Ok(answer));
        }
        let words = all(http).await?;
        Ok(Err(match errors::read(&words) {
            Some((number, words)) => errors::refused(number, &words),
            None => errors::lost(&format!("it answers with status {} of HTTP", answer.status)),
        }))
    }

    /// A question of our own, with little for an answer: rows of texts.
    pub(crate) async fn little(
        &self,
        rt: &Rt,
        format: &str,
        sql: &str,
    ) -> Result<Vec<Vec<String>>, Refused> {
        let lost = |lost: Lost| errors::lost(&lost.0);
        let opened = Http::open(rt, &self.place).await;
        let mut http = opened.map_err(|lost| errors::unreachable(&lost.0))?;
        self.ask(&mut http, &fresh(rt), format, sql.as_bytes())
            .await
            .map_err(lost)??;
        let text = all(&mut http).await.map_err(lost)?;
        if let Some((number, words)) = errors::read(&text) {
            return Err(errors::refused(number, &words));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let cells = |line: &str| line.split('\t').map(unescaped).collect();
        Ok(text.lines().map(cells).collect())
    }
}

/// The whole of a body that is little.
async fn all(http: &mut Http) -> Result<Vec<u8>, Lost> {
    let mut text = Vec::new();
    while http.body(&mut text).await? {
        if text.len() > WORDS_MAX {
            return Err(Lost("it says too much".to_owned()));
        }
    }
    Ok(text)
}

/// A cell of the format TabSeparated.
fn unescaped(cell: &str) -> String {
    let (mut out, mut escaped) = (String::with_capacity(cell.len()), false);
    for c in cell.chars() {
        match (escaped, c) {
            (false, '\\') => escaped = true,
            (true, c) => {
                out.push(match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    c => c,
                });
                escaped = false;
            }
            (false, c) => out.push(c),
        }
    }
    out
}

/// A number for a query that no other has.
pub(crate) fn fresh(rt: &Rt) -> String {
    format!("millrace-{:016x}{:016x}", rt.random(), rt.random())
}

/// A question that runs; if it is dropped before its end, ClickHouse is told to end it.
pub(crate) struct Running {
    rt: Rt,
    asker: Asker,
    pub(crate) id: String,
    is_over: bool,
}

impl Running {
    pub(crate) fn new(rt: &Rt, asker: &Asker) -> Self {
        Self {
            rt: rt.clone(),
            asker: asker.clone(),
            id: fresh(rt),
            is_over: false,
        }
    }

    pub(crate) fn is_over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (rt, mut asker) = (self.rt.clone(), self.asker.clone());
        // What limits the query need not limit its end.
        asker.settings.clear();
        let sql = format!("KILL QUERY WHERE query_id = '{}' ASYNC", self.id);
        self.rt.spawn(async move {
            // The connection is closed as well: what writes to it ends by itself.
            drop(asker.little(&rt, "TabSeparated", &sql).await);
        });
    }
}
