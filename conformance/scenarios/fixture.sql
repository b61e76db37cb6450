-- What every scenario finds on its server. Run once, when the template of a server is made.
CREATE DATABASE conf CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE DATABASE conf2 CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE USER app@'%' IDENTIFIED BY 'secret';
CREATE USER other@'%' IDENTIFIED BY 'geheim';
CREATE USER secured@'%' IDENTIFIED BY 'verschlossen' REQUIRE SSL;
GRANT ALL ON *.* TO app@'%';
GRANT ALL ON *.* TO other@'%';
GRANT ALL ON *.* TO secured@'%';
USE conf2;
CREATE TABLE only_here (id INT PRIMARY KEY, words VARCHAR(20));
INSERT INTO only_here VALUES (1, 'hier'), (2, 'nur');
USE conf;
CREATE TABLE scratch (id INT PRIMARY KEY, words VARCHAR(100)) ENGINE = InnoDB;
CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES scratch (id)) ENGINE = InnoDB;
CREATE TABLE counted (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(20)) ENGINE = InnoDB;
CREATE TABLE batched (id INT PRIMARY KEY, whole BIGINT, words VARCHAR(200), bytes VARBINARY(200), amount DOUBLE) ENGINE = InnoDB;
CREATE TABLE loaded (id INT PRIMARY KEY, words LONGTEXT) ENGINE = InnoDB;
CREATE TABLE numbers (id INT PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 999) SELECT n FROM up;
INSERT INTO numbers SELECT id + 1000 FROM numbers;
INSERT INTO numbers SELECT id + 2000 FROM numbers;
CREATE TABLE types (
  id INT NOT NULL PRIMARY KEY,
  tiny TINYINT, small SMALLINT UNSIGNED, medium MEDIUMINT, normal INT, big BIGINT, ubig BIGINT UNSIGNED ZEROFILL,
  dec_col DECIMAL(20,6), float_col FLOAT, double_col DOUBLE,
  date_col DATE, time_col TIME(3), datetime_col DATETIME(6), timestamp_col TIMESTAMP NULL, year_col YEAR,
  char_col CHAR(10), varchar_col VARCHAR(100), text_col TEXT, enum_col ENUM('a', 'b'), set_col SET('x', 'y', 'z'),
  binary_col BINARY(4), varbinary_col VARBINARY(20), blob_col BLOB, bit_col BIT(12), json_col JSON
);
SET time_zone = '+00:00';
INSERT INTO types VALUES
  (1, 1, 2, 3, 4, 5, 6, 7.5, 8.5, 9.5, '2026-01-02', '12:34:56.789', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05', 2026,
   'char', 'varchar ü 😀', 'text', 'a', 'x,z', x'00010203', x'ff00', x'deadbeef', b'101010101010', '{"k": [1, null, "v"]}'),
  (2, -128, 65535, -8388608, -2147483648, -9223372036854775808, 18446744073709551615, -99999999999999.999999, -1.5e-10, 1.7e308,
   '1000-01-01', '-838:59:59', '9999-12-31 23:59:59.999999', '1970-01-02 00:00:00', 1901, '', '', '', 'b', '', x'', x'', x'', 0, '[]'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
DELIMITER //
CREATE PROCEDURE two_results(n INT) BEGIN SELECT n AS first; SELECT n + 1 AS second, 'x' AS third; END //
CREATE PROCEDURE large_results(n INT) BEGIN SELECT n AS little; SELECT REPEAT('l', 70000 * n) AS large; SELECT id, REPEAT('m', 100) FROM numbers ORDER BY id; DO SLEEP(0.01); SELECT 'last'; END //
CREATE PROCEDURE no_result() BEGIN DO 1; END //
CREATE PROCEDURE gives_back(IN a INT, OUT b INT, INOUT c VARCHAR(100)) BEGIN SELECT a AS given, c AS also; SET b = a + 1; SET c = CONCAT(c, '!'); END //
CREATE PROCEDURE gives_much(IN n INT, OUT a LONGTEXT, OUT b DATETIME) BEGIN SET a = REPEAT('g', n); IF n > 2 THEN SET b = '2026-11-22 04:30:00'; END IF; END //
CREATE PROCEDURE gives_nothing(OUT a INT) BEGIN SET a = 1; SELECT 'before'; SELECT * FROM no_such_table; END //
CREATE PROCEDURE fails_after_one() BEGIN SELECT 1 AS fine; SELECT * FROM no_such_table; END //
DELIMITER ;
