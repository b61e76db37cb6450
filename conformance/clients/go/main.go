// Runs scenarios through go-sql-driver/mysql and prints all that the client can see.
//
//	client
//
// Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

type client struct {
	db       *sql.DB
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

var background = context.Background()

func shown(value any) string {
	if bytes, ok := value.([]byte); ok {
		if len(bytes) > 200 {
			sum := sha256.Sum256(bytes)
			return fmt.Sprintf("bytes len=%d sha256=%s", len(bytes), hex.EncodeToString(sum[:8]))
		}
		return fmt.Sprintf("bytes %q", bytes)
	}
	return fmt.Sprintf("%T %v", value, value)
}

func argument(text string) any {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), ":")
	switch kind {
	case "i":
		n, _ := strconv.ParseInt(rest, 10, 64)
		return n
	case "d":
		n, _ := strconv.ParseFloat(rest, 64)
		return n
	case "b":
		bytes, _ := hex.DecodeString(rest)
		return bytes
	case "n":
		return nil
	case "L":
		n, _ := strconv.Atoi(rest)
		return strings.Repeat("x", n)
	}
	return rest
}

func (c *client) leave() {
	if c.conn != nil {
		c.conn.Close()
		c.db.Close()
	}
	c.conn, c.db, c.prepared = nil, nil, map[string]*sql.Stmt{}
}

func (c *client) connect(address, user, password string, options map[string]string) error {
	c.leave()
	if given, ok := options["user"]; ok {
		user = given
	}
	if given, ok := options["password"]; ok {
		password = given
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = user, password, "tcp", address
	config.DBName = options["database"]
	config.MultiStatements = true
	config.AllowAllFiles = options["infile"] != "off"
	config.MaxAllowedPacket = 0
	config.Params = map[string]string{"charset": "utf8mb4"}
	if options["tls"] == "on" {
		config.TLSConfig = "skip-verify"
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	c.db = sql.OpenDB(connector)
	c.conn, err = c.db.Conn(background)
	return err
}

func results(rows *sql.Rows) error {
	defer rows.Close()
	for {
		columns, err := rows.ColumnTypes()
		if err != nil {
			return err
		}
		for _, column := range columns {
			length, hasLength := column.Length()
			nullable, hasNullable := column.Nullable()
			precision, scale, hasScale := column.DecimalSize()
			fmt.Printf("  column %s %s %v length=%d/%v null=%v/%v decimals=%d,%d/%v\n", column.Name(), column.DatabaseTypeName(),
				column.ScanType(), length, hasLength, nullable, hasNullable, precision, scale, hasScale)
		}
		for rows.Next() {
			values := make([]any, len(columns))
			places := make([]any, len(columns))
			for i := range values {
				places[i] = &values[i]
			}
			if err := rows.Scan(places...); err != nil {
				return err
			}
			words := make([]string, len(values))
			for i, value := range values {
				words[i] = shown(value)
			}
			fmt.Println("  row " + strings.Join(words, " | "))
		}
		if err := rows.Err(); err != nil {
			return err
		}
		fmt.Println("  end of result")
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

func changes(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	affected, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	fmt.Printf("  affected=%d insert_id=%d\n", affected, id)
	return nil
}

func isRead(text string) bool {
	word := strings.ToUpper(strings.Fields(text)[0])
	return word == "SELECT" || word == "SHOW" || word == "CALL" || word == "/*" || word == "EXECUTE" || word == "DESC"
}

var texts = map[string]string{}

var errUnsupported = errors.New("unsupported")

func (c *client) step(address, user, password, verb, rest string) error {
	parts := strings.Split(rest, " :: ")
	if verb != "connect" && c.conn == nil {
		return errors.New("not connected")
	}
	switch verb {
	case "connect":
		options := map[string]string{}
		for _, part := range strings.Fields(rest) {
			key, value, _ := strings.Cut(part, "=")
			options[key] = value
		}
		return c.connect(address, user, password, options)
	case "query", "script":
		if verb == "query" && !isRead(rest) {
			return changes(c.conn.ExecContext(background, rest))
		}
		rows, err := c.conn.QueryContext(background, rest)
		if err != nil {
			return err
		}
		return results(rows)
	case "prepare":
		statement, err := c.conn.PrepareContext(background, parts[1])
		if err == nil {
			c.prepared[parts[0]] = statement
			texts[parts[0]] = parts[1]
		}
		return err
	case "execute":
		statement, ok := c.prepared[parts[0]]
		if !ok {
			return errors.New("not prepared")
		}
		var arguments []any
		for _, part := range parts[1:] {
			arguments = append(arguments, argument(part))
		}
		if !isRead(texts[parts[0]]) {
			return changes(statement.ExecContext(background, arguments...))
		}
		rows, err := statement.QueryContext(background, arguments...)
		if err != nil {
			return err
		}
		return results(rows)
	case "close":
		statement, ok := c.prepared[rest]
		if !ok {
			return errors.New("not prepared")
		}
		delete(c.prepared, rest)
		return statement.Close()
	case "ping":
		return c.conn.PingContext(background)
	case "begin", "commit", "rollback":
		// By statement: database/sql ties its own transactions to a handle.
		return changes(c.conn.ExecContext(background, strings.ToUpper(verb)))
	case "autocommit":
		return changes(c.conn.ExecContext(background, "SET autocommit = "+map[string]string{"on": "1", "off": "0"}[rest]))
	case "use":
		return changes(c.conn.ExecContext(background, "USE `"+rest+"`"))
	}
	return errUnsupported
}

func play(address, user, password, path string) {
	out := &client{prepared: map[string]*sql.Stmt{}}
	fmt.Println("## " + filepath.Base(path))
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var lines []string
	for _, line := range strings.Split(string(text), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if !strings.HasPrefix(lines[0], "connect") {
		lines = append([]string{"connect database=conf tls=off"}, lines...)
	}
	for _, line := range lines {
		fmt.Println("> " + line)
		verb, rest, _ := strings.Cut(line, " ")
		err := out.step(address, user, password, verb, rest)
		var refused *mysql.MySQLError
		switch {
		case err == nil:
			fmt.Println("  ok")
		case err == errUnsupported:
			fmt.Println("  this client has no such call")
		case errors.As(err, &refused):
			fmt.Printf("  error %d %s %s\n", refused.Number, refused.SQLState[:], refused.Message)
		default:
			fmt.Printf("  error %T %v\n", err, err)
		}
	}
	out.leave()
}

func main() {
	mysql.SetLogger(silent{})
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		words := strings.SplitN(orders.Text(), " ", 5)
		play(words[0]+":"+words[1], words[2], words[3], words[4])
		fmt.Println("## end")
		fmt.Fprintln(os.Stderr, "## end")
	}
}

type silent struct{}

func (silent) Print(...any) {}
