//! The five transactions of TPC-C, as programmes for MySQL say them, over tables that are spread by their
//! warehouse. A warehouse elsewhere has a part in some of them.

use crate::{Chance, Outcome, Place, Row, Table, World};
use conformance::proxy::Driver;
use conformance::servers::vendors;
use conformance::trials::expect;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Params, Value};

const WAREHOUSES: usize = 4;
const DISTRICTS: usize = 2;
/// Customers, and at first orders, of a district.
const CUSTOMERS: usize = 9;
/// The last orders of a district at first, which nobody has carried.
const OPEN: usize = 4;
const ITEMS: usize = 25;
const LAST_NAMES: &[&str] = &["BARBARBAR", "OUGHTABLEPRI", "ESEANTICALLY"];

/// Tables by their warehouse: name, key, columns.
const SHARDED: &[(&str, &str, &str)] = &[
    (
        "warehouse",
        "w_id",
        "(w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_city VARCHAR(20), w_state CHAR(2), \
          w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id)) ENGINE=InnoDB",
    ),
    (
        "district",
        "d_w_id",
        "(d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_city VARCHAR(20), \
          d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)) ENGINE=InnoDB",
    ),
    (
        "customer",
        "c_w_id",
        "(c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2), \
          c_last VARCHAR(16), c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4), \
          c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT, c_delivery_cnt SMALLINT, c_data TEXT, \
          PRIMARY KEY (c_w_id, c_d_id, c_id), KEY (c_w_id, c_d_id, c_last, c_first)) ENGINE=InnoDB",
    ),
    (
        "history",
        "h_w_id",
        "(h_c_id INT, h_c_d_id TINYINT, h_c_w_id SMALLINT, h_d_id TINYINT, h_w_id SMALLINT, h_date DATETIME, \
          h_amount DECIMAL(6,2), h_data VARCHAR(24)) ENGINE=InnoDB",
    ),
    (
        "orders",
        "o_w_id",
        "(o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, o_entry_d DATETIME, \
          o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id), \
          KEY (o_w_id, o_d_id, o_c_id, o_id)) ENGINE=InnoDB",
    ),
    (
        "new_orders",
        "no_w_id",
        "(no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id SMALLINT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id)) \
          ENGINE=InnoDB",
    ),
    (
        "order_line",
        "ol_w_id",
        "(ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, ol_number TINYINT NOT NULL, ol_i_id INT, \
          ol_supply_w_id SMALLINT, ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
          PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) ENGINE=InnoDB",
    ),
    (
        "stock",
        "s_w_id",
        "(s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT, s_dist_01 CHAR(24), s_dist_02 CHAR(24), \
          s_ytd DECIMAL(8,0), s_order_cnt SMALLINT, s_remote_cnt SMALLINT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id)) \
          ENGINE=InnoDB",
    ),
];

/// Conditions of the standard that rows must always fulfil: none is selected that does not. The last two
/// show sums, which are compared.
const CONSISTENT: &[&str] = &[
    "SELECT w_id FROM warehouse, district WHERE w_id = d_w_id GROUP BY w_id, w_ytd HAVING w_ytd <> SUM(d_ytd)",
    "SELECT d_w_id, d_id FROM district JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last FROM orders GROUP BY o_w_id, o_d_id) AS o \
     ON o_w_id = d_w_id AND o_d_id = d_id WHERE d_next_o_id - 1 <> last",
    "SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 - COUNT(*) AS lacks FROM new_orders GROUP BY no_w_id, no_d_id \
     HAVING lacks <> 0",
    "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_orders ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
     WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    "SELECT o_w_id, o_d_id, o_id, o_ol_cnt FROM orders WHERE o_ol_cnt <> (SELECT COUNT(*) FROM order_line \
     WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)",
    "SELECT w_id FROM warehouse WHERE w_ytd <> (SELECT SUM(h_amount) FROM history WHERE h_w_id = w_id)",
    "SELECT o_w_id, o_d_id, SUM(o_ol_cnt), COUNT(*) FROM orders GROUP BY o_w_id, o_d_id ORDER BY 1, 2",
    "SELECT SUM(ol_amount), COUNT(DISTINCT ol_i_id), MAX(ol_delivery_d) FROM order_line",
];

/// Rows of all tables, which fulfil the conditions.
fn tables() -> Vec<Table> {
    let mut chance = Chance(3);
    let mut rows: Vec<Vec<Row>> = SHARDED.iter().map(|_| Vec::new()).collect();
    for w in 1..=WAREHOUSES {
        let tax = chance.below(2000);
        rows[0].push((
            w,
            format!("({w}, 'W{w}', 'street {w}', 'city', 'CA', '12345', 0.{tax:04}, 1000)"),
        ));
        for item in 1..=ITEMS {
            let many = chance.between(5, 60);
            rows[7].push((
                w,
                format!("({item}, {w}, {many}, 'one {w}', 'two {w}', 0, 0, 0, 'stock')"),
            ));
        }
        for d in 1..=DISTRICTS {
            chance.district(&mut rows, w, d);
        }
    }
    let items = (1..=ITEMS).map(|item| {
        let price = chance.money(100, 9_000);
        (
            item,
            format!("({item}, {}, 'item {item}', {price}, 'data')", item % 7),
        )
    });
    let items: Vec<Row> = items.collect();
    let sharded = SHARDED.iter().zip(rows);
    let mut tables: Vec<_> = sharded
        .map(|((name, key, columns), rows)| Table {
            name,
            columns: (*columns).to_owned(),
            rows,
            place: Place::Sharded(key, 2),
        })
        .collect();
    tables.push(Table {
        name: "item",
        columns: "(i_id INT PRIMARY KEY, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50))".to_owned(),
        rows: items,
        place: Place::Reference,
    });
    tables
}

impl Chance {
    /// A district with its customers and orders.
    fn district(&mut self, rows: &mut [Vec<Row>], w: usize, d: usize) {
        let paid = 1000 / DISTRICTS;
        let tax = self.below(2000);
        rows[1].push((
            w,
            format!(
                "({d}, {w}, 'D{d}', 'street {d}', 'city', 0.{tax:04}, {paid}, {})",
                CUSTOMERS + 1
            ),
        ));
        for c in 1..=CUSTOMERS {
            let credit = self.of(&["GC", "GC", "BC"]);
            let last = LAST_NAMES[c % LAST_NAMES.len()];
            rows[2].push((
                w,
                format!(
                    "({c}, {d}, {w}, 'first {}', 'OE', '{last}', '2008-12-22', '{credit}', 50000, 0.{:04}, -10, 10, 1, 0, 'data {c}')",
                    c * 7 % 10,
                    self.below(5000),
                ),
            ));
            let lines = self.between(2, 4);
            let is_open = c + OPEN > CUSTOMERS;
            let carrier = if is_open { "NULL" } else { "3" };
            rows[4].push((
                w,
                format!("({c}, {d}, {w}, {c}, '2008-12-22', {carrier}, {lines}, 1)"),
            ));
            if is_open {
                rows[5].push((w, format!("({c}, {d}, {w})")));
            }
            for line in 1..=lines {
                let delivered = if is_open { "NULL" } else { "'2008-12-23'" };
                let (item, amount) = (self.between(1, ITEMS), self.money(1, 99_999));
                rows[6].push((
                    w,
                    format!(
                        "({c}, {d}, {w}, {line}, {item}, {w}, {delivered}, 5, {amount}, 'info')"
                    ),
                ));
            }
        }
        rows[3].push((
            w,
            format!("(1, {d}, {w}, {d}, {w}, '2008-12-22', {paid}, 'first')"),
        ));
    }
}

/// A client of the server that has whole tables, and one of the proxy. Both say the same.
struct Both {
    conns: [Conn; 2],
    /// Statements are prepared, and do not have their values in the text.
    prepares: bool,
    wrong: Vec<String>,
}

/// Rows of an answer.
type Rows = Vec<Vec<Value>>;

/// Answer of one: rows, and what is said of the statement.
async fn told(
    conn: &mut Conn,
    sql: &str,
    values: &[Value],
    prepares: bool,
) -> Result<(Rows, u64, String), String> {
    let words = |error: mysql_async::Error| error.to_string();
    let rows: Vec<mysql_async::Row> = if prepares {
        let values = Params::from(values.to_vec());
        conn.exec(sql, values).await.map_err(words)?
    } else {
        let mut parts = sql.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (part, value) in parts.zip(values) {
            text.push_str(&value.as_sql(false));
            text.push_str(part);
        }
        conn.query(text).await.map_err(words)?
    };
    let mut rows: Rows = rows.into_iter().map(mysql_async::Row::unwrap).collect();
    if !sql.contains("ORDER BY") {
        rows.sort_by_key(|row| format!("{row:?}"));
    }
    Ok((rows, conn.affected_rows(), conn.info().into_owned()))
}

impl Both {
    /// Says a statement, and returns the rows. Where answers differ, that is noted.
    async fn say(&mut self, sql: &str, values: &[Value]) -> Result<Rows, String> {
        let prepares = self.prepares && sql.contains('?');
        let [whole, parts] = &mut self.conns;
        let wanted = told(whole, sql, values, prepares).await;
        let found = told(parts, sql, values, prepares).await;
        if found != wanted {
            self.wrong.push(format!(
                "{sql} {values:?}: {found:?}\n instead of {wanted:?}"
            ));
        }
        wanted.map(|(rows, _, _)| rows)
    }
}

/// Says a statement with the values of its `?`.
macro_rules! say {
    ($both:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $both.say($sql, &[$(Value::from($value)),*]).await?
    };
}

/// The first value of the first row.
fn first(rows: &Rows) -> Result<i64, String> {
    let value = rows.first().and_then(|row| row.first());
    match value.ok_or("no row")? {
        Value::Int(number) => Ok(*number),
        Value::Bytes(digits) => {
            let digits = String::from_utf8_lossy(digits);
            digits.parse().map_err(|_| digits.into_owned())
        }
        other => Err(format!("{other:?}")),
    }
}

/// Place where somebody buys: a warehouse, and a district of it.
#[derive(Clone, Copy)]
struct At {
    w: usize,
    d: usize,
}

/// A line of an order: which item, from which warehouse, how many.
type Line = (usize, usize, usize);

/// So many of a row of `?`.
fn several(row: &str, many: usize) -> String {
    vec![row; many].join(", ")
}

async fn new_order(both: &mut Both, at: At, c: usize, lines: &[Line], fails: bool) -> Outcome {
    let At { w, d } = at;
    say!(both, "START TRANSACTION");
    say!(
        both,
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
        w,
        d,
        c,
    );
    let next = first(&say!(
        both,
        "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
        w,
        d,
    ))?;
    say!(
        both,
        "UPDATE district SET d_next_o_id = ? WHERE d_id = ? AND d_w_id = ?",
        next + 1,
        d,
        w
    );
    say!(
        both,
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, NOW(), ?, ?)",
        next,
        d,
        w,
        c,
        lines.len(),
        lines.iter().all(|line| line.1 == w),
    );
    say!(
        both,
        "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
        next,
        d,
        w
    );
    for (number, (item, from, many)) in (1..).zip(lines) {
        let number: usize = number;
        say!(
            both,
            "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
            *item
        );
        let left = first(&say!(
            both,
            "SELECT s_quantity, s_data, s_dist_01 AS s_dist FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE",
            *item,
            *from,
        ))?;
        let left = left - *many as i64;
        let left = if left < 10 { left + 91 } else { left };
        say!(
            both,
            "UPDATE stock SET s_quantity = ? WHERE s_i_id = ? AND s_w_id = ?",
            left,
            *item,
            *from
        );
        say!(
            both,
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            next,
            d,
            w,
            number,
            *item,
            *from,
            *many,
            12.5,
            "info",
        );
    }
    say!(both, if fails { "ROLLBACK" } else { "COMMIT" });
    Ok(())
}

/// A new order with as few statements as programmes say that know of rows.
async fn new_order_at_once(both: &mut Both, at: At, c: usize, lines: &[Line]) -> Outcome {
    let At { w, d } = at;
    say!(both, "BEGIN");
    let customer = "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON c_w_id = w_id WHERE w_id = ? AND c_d_id = ? AND c_id = ?";
    say!(both, customer, w, d, c);
    let next = "SELECT d_next_o_id, d_tax FROM district WHERE d_id = ? AND d_w_id = ? FOR UPDATE";
    let next = first(&say!(both, next, d, w))?;
    let numbered =
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = ? AND d_w_id = ?";
    say!(both, numbered, d, w);
    let order = "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, NOW(), ?, ?)";
    say!(both, order, next, d, w, c, lines.len(), 1);
    say!(
        both,
        "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
        next,
        d,
        w
    );
    let items: Vec<_> = lines.iter().map(|line| Value::from(line.0)).collect();
    let prices = format!(
        "SELECT i_id, i_price, i_name FROM item WHERE i_id IN ({})",
        several("?", items.len())
    );
    both.say(&prices, &items).await?;
    let stocks: Vec<Value> = lines
        .iter()
        .flat_map(|line| [Value::from(line.1), Value::from(line.0)])
        .collect();
    let places = several("(?, ?)", lines.len());
    let stock = format!(
        "SELECT s_i_id, s_quantity, s_data, s_dist_01, s_dist_02 FROM stock WHERE (s_w_id, s_i_id) IN ({places}) FOR UPDATE"
    );
    both.say(&stock, &stocks).await?;
    let taken = format!(
        "UPDATE stock SET s_quantity = s_quantity - 1, s_ytd = s_ytd + 1, s_order_cnt = s_order_cnt + 1 WHERE (s_w_id, s_i_id) IN ({places})"
    );
    both.say(&taken, &stocks).await?;
    let (mut values, mut number) = (Vec::new(), 0usize);
    for (item, from, many) in lines {
        number += 1;
        values.extend([
            Value::from(next),
            Value::from(d),
            Value::from(w),
            Value::from(number),
            Value::from(*item),
            Value::from(*from),
            Value::from(*many),
        ]);
        values.extend([Value::from(7.25), Value::from("info")]);
    }
    let lines = format!(
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES {}",
        several("(?, ?, ?, ?, ?, ?, ?, ?, ?)", lines.len())
    );
    both.say(&lines, &values).await?;
    say!(both, "COMMIT");
    Ok(())
}

/// `of`: where the customer belongs.
async fn payment(both: &mut Both, at: At, of: At, c: usize, by_name: bool) -> Outcome {
    let At { w, d } = at;
    let amount = 35.75;
    say!(both, "BEGIN");
    say!(
        both,
        "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
        amount,
        w
    );
    say!(
        both,
        "SELECT w_street_1, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?",
        w
    );
    say!(
        both,
        "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
        amount,
        w,
        d
    );
    say!(
        both,
        "SELECT d_street_1, d_city, d_name FROM district WHERE d_w_id = ? AND d_id = ?",
        w,
        d
    );
    let mut c = c as i64;
    if by_name {
        let last = LAST_NAMES[c as usize % LAST_NAMES.len()];
        let count = "SELECT COUNT(c_id) AS namecnt FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ?";
        let many = first(&say!(both, count, of.w, of.d, last))?;
        let ids = "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
        let ids = say!(both, ids, of.w, of.d, last);
        c = first(&ids[many as usize / 2..].to_vec())?;
    }
    let customer = "SELECT c_first, c_middle, c_last, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_since FROM customer \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
    let customer = say!(both, customer, of.w, of.d, c);
    let is_bad = customer
        .first()
        .is_some_and(|row| row[3] == Value::from("BC"));
    if is_bad {
        say!(
            both,
            "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            of.w,
            of.d,
            c
        );
        let paid = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, \
             c_data = SUBSTR(CONCAT(c_id, ' ', c_d_id, ' ', ?, ' | ', c_data), 1, 100) WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
        say!(both, paid, amount, amount, w, of.w, of.d, c);
    } else {
        let paid = "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
        say!(both, paid, amount, amount, of.w, of.d, c);
    }
    let history = "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)";
    say!(both, history, of.d, of.w, c, d, w, amount, "W    D");
    say!(both, "COMMIT");
    Ok(())
}

async fn order_status(both: &mut Both, at: At, c: usize) -> Outcome {
    let At { w, d } = at;
    say!(both, "START TRANSACTION READ ONLY");
    let last = LAST_NAMES[c % LAST_NAMES.len()];
    let by_name = "SELECT c_balance, c_first, c_middle, c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
    say!(both, by_name, w, d, last);
    let customer = "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    say!(both, customer, w, d, c);
    let order = "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
    let order = first(&say!(both, order, w, d, c))?;
    let greatest = "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
         AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?)";
    say!(both, greatest, w, d, c, w, d, c);
    let lines = "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    say!(both, lines, w, d, order);
    say!(both, "COMMIT");
    Ok(())
}

async fn delivery(both: &mut Both, w: usize) -> Outcome {
    say!(both, "BEGIN");
    for d in 1..=DISTRICTS {
        let oldest = "SELECT no_o_id FROM new_orders WHERE no_d_id = ? AND no_w_id = ? ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE";
        let order = first(&say!(both, oldest, d, w))?;
        say!(
            both,
            "DELETE FROM new_orders WHERE no_o_id = ? AND no_d_id = ? AND no_w_id = ?",
            order,
            d,
            w
        );
        let customer = "SELECT o_c_id FROM orders WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?";
        let c = first(&say!(both, customer, order, d, w))?;
        say!(
            both,
            "UPDATE orders SET o_carrier_id = ? WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?",
            5,
            order,
            d,
            w
        );
        say!(
            both,
            "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
            order,
            d,
            w
        );
        say!(
            both,
            "SELECT SUM(ol_amount) AS sm FROM order_line WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
            order,
            d,
            w
        );
        let paid = "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = ? AND c_d_id = ? AND c_w_id = ?";
        say!(both, paid, 99.5, c, d, w);
    }
    say!(both, "COMMIT");
    Ok(())
}

/// A delivery for all districts at once.
async fn delivery_at_once(both: &mut Both, w: usize) -> Outcome {
    say!(both, "BEGIN");
    let oldest = "SELECT no_d_id, MIN(no_o_id) FROM new_orders WHERE no_w_id = ? GROUP BY no_d_id ORDER BY no_d_id FOR UPDATE";
    let oldest = say!(both, oldest, w);
    let mut keys = Vec::new();
    for row in &oldest {
        keys.extend([Value::from(w), row[0].clone(), row[1].clone()]);
    }
    let places = several("(?, ?, ?)", oldest.len());
    for sql in [
        "DELETE FROM new_orders WHERE (no_w_id, no_d_id, no_o_id) IN (…)",
        "UPDATE orders SET o_carrier_id = 4 WHERE (o_w_id, o_d_id, o_id) IN (…)",
        "SELECT o_d_id, o_c_id FROM orders WHERE (o_w_id, o_d_id, o_id) IN (…)",
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE (ol_w_id, ol_d_id, ol_o_id) IN (…)",
        "SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id) IN (…) GROUP BY ol_d_id",
    ] {
        both.say(&sql.replace('…', &places), &keys).await?;
    }
    say!(both, "COMMIT");
    Ok(())
}

async fn stock_level(both: &mut Both, at: At) -> Outcome {
    let At { w, d } = at;
    let next = first(&say!(
        both,
        "SELECT d_next_o_id FROM district WHERE d_id = ? AND d_w_id = ?",
        d,
        w
    ))?;
    let low = "SELECT COUNT(DISTINCT (s_i_id)) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? \
         AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?";
    say!(both, low, w, d, next, next - 20, w, 30);
    let joined = "SELECT COUNT(DISTINCT s_i_id) AS stock_count FROM order_line JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_w_id \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id BETWEEN ? AND ? AND s_quantity < ?";
    say!(both, joined, w, d, next - 20, next - 1, 30);
    let items = "SELECT DISTINCT ol_i_id FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ?";
    for row in say!(both, items, w, d, next, next - 3) {
        let count = "SELECT COUNT(*) FROM stock WHERE s_w_id = ? AND s_i_id = ? AND s_quantity < ?";
        say!(both, count, w, row[0].clone(), 30);
    }
    Ok(())
}

/// A mix of the five, a part of them over two warehouses.
async fn mix(both: &mut Both, chance: &mut Chance, rounds: usize) -> Outcome {
    for round in 0..rounds {
        both.prepares = round % 2 == 1;
        let at = At {
            w: chance.between(1, WAREHOUSES),
            d: chance.between(1, DISTRICTS),
        };
        let elsewhere = At {
            w: at.w % WAREHOUSES + 1,
            ..at
        };
        let c = chance.between(1, CUSTOMERS);
        let from = if round % 3 == 0 { elsewhere.w } else { at.w };
        let mut item = chance.below(ITEMS);
        let mut line = |from| {
            item = item % ITEMS + 1;
            (item, from, chance.between(1, 10))
        };
        let lines = [line(at.w), line(from), line(at.w)];
        new_order(both, at, c, &lines, round % 5 == 4).await?;
        new_order_at_once(both, at, c, &lines).await?;
        let of = if round % 3 == 1 { elsewhere } else { at };
        payment(both, at, of, c, round % 4 < 2).await?;
        order_status(both, at, c).await?;
        match round % 4 {
            0 => delivery(both, at.w).await?,
            2 => delivery_at_once(both, at.w).await?,
            _ => stock_level(both, at).await?,
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn transactions(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = World::with(driver, vendor, &tables())?;
        world.lets_transactions_have_branches()?;
        let mut both = Both {
            conns: world.come_in().await?,
            prepares: false,
            wrong: Vec::new(),
        };
        say!(both, "SET timestamp = 1229940000");
        mix(&mut both, &mut Chance(11), 12).await?;
        both.prepares = false;
        let (consistent, sums) = CONSISTENT.split_at(CONSISTENT.len() - 2);
        for sql in consistent {
            let found = say!(both, sql);
            expect(found.is_empty(), || format!("{vendor}: {sql}: {found:?}"))?;
        }
        for sql in sums {
            say!(both, sql);
        }
        for (name, _, _) in SHARDED {
            say!(both, &format!("SELECT * FROM {name}"));
        }
        let wrong = &both.wrong;
        expect(wrong.is_empty(), || {
            let some: Vec<_> = wrong.iter().take(12).map(String::as_str).collect();
            format!("{vendor}: {}:\n{}", wrong.len(), some.join("\n\n"))
        })?;
    }
    Ok(())
}
