//! The detector of injections against statements that it was not made with: attacks of the families
//! that public lists and tools have, and what frameworks and applications send. The rates are in
//! docs/features/firewall.md; whoever changes the detector sees here what that costs.

use sql::{Lexing, injection};

/// Text before and behind the value that an attacker writes.
const HOLES: &[(&str, &str)] = &[
    (
        "SELECT id, name FROM products WHERE category = '",
        "' AND released = 1",
    ),
    (
        "SELECT * FROM accounts WHERE owner_id = ",
        " ORDER BY id LIMIT 10",
    ),
    ("UPDATE profiles SET bio = '", "' WHERE user_id = 7"),
    (
        "SELECT a.* FROM articles a WHERE a.title LIKE '%",
        "%' AND a.public = 1",
    ),
];

/// (which hole, what is written into it)
const ATTACKS: &[(usize, &str)] = &[
    (0, "' OR 1=1-- -"),
    (0, "' OR '1'='1"),
    (0, "' OR 'x'='x' -- "),
    (0, "' OR 1=1#"),
    (0, "' oR 2 > 1 LIMIT 1 -- "),
    (0, "' || '1'='1"),
    (0, "' OR TRUE -- "),
    (0, "x' AND 1=2 UNION SELECT 1,2 -- "),
    (0, "' UNION SELECT NULL,NULL-- -"),
    (0, "' UNION SELECT username, password FROM users-- "),
    (
        0,
        "' UNION SELECT table_name, NULL FROM information_schema.tables-- ",
    ),
    (0, "' UNION ALL SELECT @@version, NULL-- "),
    (
        0,
        "' UNION SELECT CONCAT(user,':',authentication_string), 1 FROM mysql.user#",
    ),
    (0, "' UNION/**/SELECT/**/1,2#"),
    (0, "' AND SLEEP(5)-- "),
    (0, "' AND (SELECT 4242 FROM (SELECT(SLEEP(5)))x)-- "),
    (0, "' AND IF(SUBSTRING(user(),1,1)='r', SLEEP(3), 0)-- "),
    (0, "' AND BENCHMARK(5000000,SHA1(1))-- "),
    (
        0,
        "' AND EXTRACTVALUE(1,CONCAT(0x7e,(SELECT database())))-- ",
    ),
    (0, "' AND UPDATEXML(1,CONCAT(0x7e,version()),1)-- "),
    (
        0,
        "' AND (SELECT COUNT(*) FROM information_schema.tables GROUP BY CONCAT(version(),FLOOR(RAND(0)*2)))-- ",
    ),
    (0, "'; DROP TABLE products-- "),
    (0, "'; UPDATE users SET admin=1 WHERE name='me'; -- "),
    (0, "' AND 1=1-- "),
    (0, "' AND '1'='1"),
    (
        0,
        "' AND ASCII(SUBSTRING((SELECT password FROM users LIMIT 1),1,1)) > 64-- ",
    ),
    (0, "' AND EXISTS(SELECT * FROM users WHERE name='admin')-- "),
    (
        0,
        "' RLIKE (SELECT (CASE WHEN (1=1) THEN 1 ELSE 0x28 END))-- ",
    ),
    (0, "' ORDER BY 10-- "),
    (0, "' GROUP BY 3 HAVING 1=1-- "),
    (
        0,
        "' PROCEDURE ANALYSE(EXTRACTVALUE(1,CONCAT(0x3a,version())),1)-- ",
    ),
    (0, "' INTO OUTFILE '/var/www/x.php'-- "),
    (0, "'-- "),
    (0, "'#"),
    (0, "'/*"),
    (0, "' AND 1 = (SELECT 1) -- "),
    (0, "' XOR 1=1-- "),
    (0, "' OR 1 -- "),
    (0, "' OR 5 IN (5) -- "),
    (0, "'='"),
    (0, "' OR ISNULL(1/0) -- "),
    (0, "' OR LENGTH(database()) > 0 -- "),
    (0, "' OR password LIKE '%"),
    (1, "1 OR 1=1"),
    (1, "-1 OR 17-7=10"),
    (1, "1 OR 2 LIKE 2"),
    (1, "1 AND 1=1"),
    (1, "1 UNION SELECT 1,2,3-- "),
    (1, "-1 UNION SELECT name, password, 3 FROM users-- "),
    (1, "0 UNION SELECT @@datadir, 2, 3"),
    (1, "1 AND SLEEP(5)"),
    (1, "IF(1=1, SLEEP(5), 1)"),
    (1, "(SELECT 1 FROM (SELECT SLEEP(5)) a)"),
    (1, "1; DELETE FROM accounts-- "),
    (1, "1 /*!50000UNION*/ /*!50000SELECT*/ 1,2,3"),
    (1, "1 OR NOT FALSE"),
    (1, "1 RLIKE SLEEP(5)"),
    (1, "owner_id"),
    (1, "1 OR owner_id IS NOT NULL"),
    (1, "1 AND EXTRACTVALUE(7,CONCAT(0x5c,user()))"),
    (1, "1 PROCEDURE ANALYSE()"),
    (1, "(SELECT COUNT(*) FROM mysql.user)"),
    (2, "x', admin = 1 -- "),
    (2, "x' WHERE 1=1 -- "),
    (2, "x', name = (SELECT password FROM users LIMIT 1) -- "),
    (2, "x' OR SLEEP(3) OR '"),
    (2, "x' OR '1'='1"),
    (3, "' OR 1=1 -- "),
    (3, "%' OR '%'='"),
    (3, "' UNION SELECT 1,user(),3,4 -- "),
    (3, "x%' AND 1=(SELECT COUNT(*) FROM users) -- "),
    (3, "%' AND SLEEP(2) AND '%'='"),
    (3, "'; TRUNCATE articles -- "),
];

/// Not seen: most look like what somebody might mean.
const MISSED: usize = 11;

const MEANT: &[&str] = &[
    // Django
    "SELECT `auth_user`.`id`, `auth_user`.`password` FROM `auth_user` WHERE `auth_user`.`username` = 'ann' LIMIT 21",
    "SELECT (1) AS `a` FROM `django_session` WHERE `django_session`.`session_key` = 'k3' LIMIT 1",
    "SELECT COUNT(*) AS `__count` FROM `shop_order` WHERE (`shop_order`.`state` IN ('new', 'paid') AND NOT (`shop_order`.`total` = 0))",
    "UPDATE `shop_item` SET `stock` = (`shop_item`.`stock` - 1) WHERE (`shop_item`.`id` = 3 AND `shop_item`.`stock` >= 1)",
    "SELECT `t`.`id` FROM `t` WHERE (`t`.`a` LIKE BINARY '%or 1=1%' OR `t`.`b` REGEXP BINARY '^x')",
    "SELECT CASE WHEN (`a`.`x` = 1) THEN 'y' WHEN (`a`.`x` = 2) THEN 'z' ELSE NULL END AS `k` FROM `a`",
    "INSERT INTO `django_admin_log` (`action_time`, `user_id`, `change_message`) VALUES ('2024-01-01 10:00:00', 1, '[{\\\"changed\\\": {\\\"fields\\\": [\\\"a\\\"]}}]')",
    "SAVEPOINT `s140_x1`",
    // Rails
    "SELECT 1 AS one FROM `users` WHERE `users`.`email` = BINARY 'a@b.c' LIMIT 1",
    "SELECT `users`.* FROM `users` WHERE (name = 'x' OR email = 'x') AND `users`.`deleted_at` IS NULL ORDER BY `users`.`id` ASC LIMIT 1 /* app:shop */",
    "SELECT `posts`.* FROM `posts` WHERE (1=0)",
    "SELECT COUNT(*) FROM (SELECT 1 AS one FROM `posts` WHERE `posts`.`blog_id` = 1 LIMIT 100) subquery_for_count",
    "SELECT table_name FROM (SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = database()) _subquery WHERE _subquery.table_type = 'BASE TABLE'",
    "SELECT RELEASE_LOCK('7731')",
    "INSERT INTO `schema_migrations` (version) VALUES ('20240101000001'),\n('20240101000002')",
    "SHOW FULL FIELDS FROM `users`",
    // Hibernate, JPA
    "select user0_.id as id1_0_, user0_.name as name2_0_ from users user0_ where user0_.name=? or user0_.email=?",
    "select count(*) as col_0_0_ from orders o1_0 where o1_0.status='OPEN' and (o1_0.total>100 or 1=1)",
    "/* select generatedAlias0 from User as generatedAlias0 */ select u1_0.id from users u1_0 where u1_0.id in (1,2,3,4)",
    "select next_val as id_val from hibernate_sequence for update",
    "update hibernate_sequence set next_val= 51 where next_val=1",
    "select 1",
    "/* ping */ SELECT 1",
    // Laravel, Doctrine
    "select * from `users` where `users`.`id` = 1 and `users`.`id` is not null limit 1",
    "select exists(select * from `users` where `email` = 'a@b.c') as `exists`",
    "select * from `jobs` where `queue` = 'default' and ((`reserved_at` is null and `available_at` <= 1700000000) or (`reserved_at` <= 1699999910)) order by `id` asc limit 1 FOR UPDATE SKIP LOCKED",
    "select * from `posts` where 0 = 1",
    "select * from `a` where 1 = 1 and `b` = 'x'",
    "SELECT t0.id AS id_1 FROM user t0 WHERE t0.username = 'x' LIMIT 1",
    "SELECT DISTINCT k0_.id FROM kunde k0_ LEFT JOIN ort o1_ ON k0_.ort_id = o1_.id WHERE (k0_.name LIKE '%x%' OR k0_.vorname LIKE '%x%') AND k0_.aktiv = 1",
    "select table_name as `name`, (data_length + index_length) as `size` from information_schema.tables where table_schema = 'shop' and table_type = 'BASE TABLE'",
    // SQLAlchemy, Sequelize, Prisma, GORM
    "SELECT users.id AS users_id FROM users WHERE users.name = 'ed' AND false = 1",
    "SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1",
    "SELECT 1 WHERE 0 = 1 UNION SELECT 2",
    "SELECT `id`, `name` FROM `Users` AS `User` WHERE (`User`.`a` = 1 OR (`User`.`b` > 2 AND `User`.`c` IN (3, 4))) LIMIT 0, 25;",
    "SELECT `shop`.`User`.`id` FROM `shop`.`User` WHERE (`shop`.`User`.`email` = ? AND 1=1) LIMIT ? OFFSET ?",
    "SELECT `shop`.`User`.`id` FROM `shop`.`User` WHERE 1=1 ORDER BY `shop`.`User`.`id` ASC",
    "SELECT * FROM `users` WHERE name <> 'x' AND `users`.`deleted_at` IS NULL",
    "INSERT INTO `users` (`name`,`n`) VALUES ('a',1) ON DUPLICATE KEY UPDATE `n`=VALUES(`n`)",
    // WordPress, Drupal, Magento, MediaWiki, phpBB
    "SELECT option_name, option_value FROM wp_options WHERE autoload = 'yes'",
    "SELECT SQL_CALC_FOUND_ROWS wp_posts.ID FROM wp_posts WHERE 1=1 AND (((wp_posts.post_title LIKE '%it\\'s%') OR (wp_posts.post_excerpt LIKE '%it\\'s%'))) AND wp_posts.post_type IN ('post', 'page') ORDER BY wp_posts.post_date DESC LIMIT 0, 10",
    "SELECT t.*, tt.* FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id WHERE tt.taxonomy IN ('category') AND t.slug = 'or-1-1' LIMIT 1",
    "SELECT wp_posts.* FROM wp_posts WHERE 1=1 AND wp_posts.ID IN (1,2,3) OR 0 = 1",
    "SELECT post_id FROM wp_postmeta WHERE meta_key = '_x' AND meta_value = '1' UNION SELECT post_id FROM wp_other WHERE k = 2",
    "DELETE a, b FROM wp_options a, wp_options b WHERE a.option_name LIKE '\\_transient\\_%' AND b.option_value < 1700000000",
    "SELECT \"base\".\"nid\" FROM node base WHERE base.nid IN ('1', '2')",
    "SELECT 1 AS expression FROM cache_bootstrap WHERE ( (cid = 'x') )",
    "SELECT `main_table`.*, IF(`at_v`.`value_id` > 0, `at_v`.`value`, `at_d`.`value`) AS `v` FROM `catalog_category_entity` AS `main_table` WHERE (`e`.`path` LIKE '1/2/%')",
    "SELECT /* Title::getParent */ page_id FROM `page` WHERE page_namespace = 0 AND page_title = 'SQL_injection:_\\'_OR_1=1' LIMIT 1",
    "SELECT /* LinkCache */ 1 FROM `page` WHERE (page_namespace = 0 AND page_title IN ('A','B')) OR (page_namespace = 4 AND page_title = 'C')",
    "SELECT u.*, s.* FROM phpbb_sessions s, phpbb_users u WHERE s.session_id = 'abc' AND u.user_id = s.session_user_id",
    // Tools: mysqldump, monitoring, clients, dashboards
    "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`",
    "SELECT COLUMN_NAME, JSON_EXTRACT(HISTOGRAM, '$.\"number-of-buckets-specified\"') FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'a' AND TABLE_NAME = 'b'",
    "/*!40101 SET @saved_cs_client = @@character_set_client */",
    "SHOW GLOBAL STATUS WHERE Variable_name = 'Uptime' OR Variable_name LIKE 'Com\\_%'",
    "SELECT user, host FROM mysql.user WHERE user = 'root' OR plugin = ''",
    "SELECT * FROM information_schema.processlist WHERE command <> 'Sleep' AND time > 60",
    "select @@version_comment limit 1",
    "SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client",
    "SELECT UNIX_TIMESTAMP(ts) DIV 60 * 60 AS time, AVG(v) FROM m WHERE ts BETWEEN FROM_UNIXTIME(1) AND FROM_UNIXTIME(2) GROUP BY 1 ORDER BY 1",
    "SELECT a FROM t WHERE 1 AND b = 2",
    "SELECT a FROM t WHERE TRUE AND (b = 'x' OR c = 'y')",
    "SELECT name FROM a WHERE id = 5 UNION ALL SELECT 'none' FROM dual WHERE NOT EXISTS (SELECT 1 FROM a WHERE id = 5)",
    "SELECT a FROM t WHERE x = 1 UNION SELECT 0 AS a",
    "SELECT month, SUM(n) FROM (SELECT 1 AS month, 0 AS n UNION SELECT 2, 0 UNION SELECT MONTH(d), COUNT(*) FROM o WHERE y = 2024 GROUP BY 1) z GROUP BY 1",
    "SELECT a FROM t WHERE b = 'x' -- find the customer's order",
    "SELECT a FROM t WHERE b = 1 # the first one",
    "SELECT a FROM t WHERE SLEEP(0.1) = 0",
    "DO SLEEP(1)",
    "INSERT INTO log (msg) VALUES ('user said: \\' OR 1=1 --')",
    "INSERT INTO log (msg) VALUES (\"it's -- fine # really\")",
    "UPDATE t SET note = 'a; DROP TABLE x; --' WHERE id = 1",
    "SELECT a FROM t WHERE d = '2024-01-01' AND (b <> 'x' OR b IS NULL) AND NOT c",
    "SELECT IF(1=1, 'y', 'n')",
    "SELECT a FROM t WHERE IF(b = 1, c = 2, d = 3)",
    "SELECT a FROM t WHERE (a, b) IN ((1, 'x'), (2, 'y')) OR (a, b) = (3, 'z')",
    "SELECT a FROM t HAVING 1 ORDER BY a",
    "CALL report(1, 'x')",
    "BEGIN; INSERT INTO a VALUES (1); INSERT INTO b VALUES ('x'); COMMIT; -- done",
    "SELECT a FROM t WHERE b LIKE '100!%' ESCAPE '!' OR b LIKE 'x%'",
    "SELECT a FROM t WHERE b = 'x' OR 'y' = c",
    "LOAD DATA LOCAL INFILE '/tmp/x' INTO TABLE t FIELDS TERMINATED BY ',' ENCLOSED BY '\"'",
];

/// Blamed although somebody means them.
const BLAMED: usize = 4;

#[test]
fn as_many_attacks_are_seen_as_the_page_says() {
    let whole =
        |(hole, written): &(usize, &str)| format!("{}{written}{}", HOLES[*hole].0, HOLES[*hole].1);
    let missed: Vec<_> = ATTACKS
        .iter()
        .map(whole)
        .filter(|text| injection(text.as_bytes(), Lexing::Escapes).is_none())
        .collect();
    assert_eq!(missed.len(), MISSED, "of {}: {missed:#?}", ATTACKS.len());
}

#[test]
fn as_few_statements_of_applications_are_blamed_as_the_page_says() {
    let blamed: Vec<_> = MEANT
        .iter()
        .filter_map(|text| Some((text, injection(text.as_bytes(), Lexing::Escapes)?)))
        .collect();
    assert_eq!(blamed.len(), BLAMED, "of {}: {blamed:#?}", MEANT.len());
}
