/* Runs scenarios through ODBC, by unixODBC and MariaDB's driver, and prints all that the client can see.
 *
 * Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.
 */
#define _GNU_SOURCE
#include <locale.h>
#include <sql.h>
#include <sqlext.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 64, NAMES = 16, WORDS = 2048, BACK = 4 << 20 };
/* Bits of the driver's OPTION. Not the one by which it makes lost connections anew: it crashes over the next statement, also before servers. */
enum { FOUND_ROWS = 2, IGNORE_SPACE = 256, COMPRESSED = 2048, MULTI_STATEMENTS = 67108864 };

/* A parameter; `length` as ODBC wants it beside the value. */
struct value {
    char kind;
    long long whole;
    double real;
    char *bytes;
    SQLLEN length;
};

/* What is prepared, or read piece by piece, by its name. */
struct named {
    char name[32];
    SQLHSTMT statement;
};

static SQLHENV environment;
static SQLHDBC connection;
static struct named prepared[NAMES], open_results[NAMES];
/* The line of the scenario by which the connection was made, and who made it: others are made like it. */
static char like[1024], host[64], user[64], password[64];
static unsigned port;

static void *must(void *memory)
{
    if (!memory) {
        perror("memory");
        exit(1);
    }
    return memory;
}

/* The driver manager would take bytes for letters of another set: what is text goes as UTF-16. */
static SQLWCHAR *wide(const char *utf8)
{
    SQLWCHAR *all = must(calloc(strlen(utf8) + 1, sizeof *all)), *next = all;
    for (const unsigned char *at = (const unsigned char *)utf8; *at;) {
        unsigned more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
        uint32_t letter = more ? *at & (0x3f >> more) : *at;
        for (at++; more && *at; more--)
            letter = letter << 6 | (*at++ & 0x3f);
        if (letter > 0xffff) {
            *next++ = (SQLWCHAR)(0xd800 + ((letter - 0x10000) >> 10));
            letter = 0xdc00 + ((letter - 0x10000) & 0x3ff);
        }
        *next++ = (SQLWCHAR)letter;
    }
    return all;
}

static void put_wide(const SQLWCHAR *words)
{
    for (; *words; words++)
        printf(*words < 32 || *words > 126 ? "\\u%04x" : "%c", *words);
}

/* Bytes as words; many by their number and a hash (FNV-1a). */
static void shown(const char *bytes, unsigned long length)
{
    if (!bytes) {
        printf("NULL");
    } else if (length > 200) {
        uint64_t hash = 0xcbf29ce484222325u;
        for (unsigned long at = 0; at < length; at++)
            hash = (hash ^ (unsigned char)bytes[at]) * 0x100000001b3u;
        printf("len=%lu hash=%016llx", length, (unsigned long long)hash);
    } else {
        putchar('"');
        for (unsigned long at = 0; at < length; at++) {
            unsigned char byte = (unsigned char)bytes[at];
            printf(byte < 32 || byte > 126 || byte == '"' || byte == '\\' ? "\\x%02x" : "%c", byte);
        }
        putchar('"');
    }
}

/* Whether it went well; errors, and what comes with a success, in words. */
static bool fine(SQLRETURN outcome, SQLSMALLINT kind, SQLHANDLE of)
{
    if (outcome == SQL_ERROR || outcome == SQL_SUCCESS_WITH_INFO) {
        SQLWCHAR state[6], words[WORDS];
        SQLINTEGER code;
        SQLSMALLINT length;
        for (SQLSMALLINT at = 1; SQL_SUCCEEDED(SQLGetDiagRecW(kind, of, at, state, &code, words, WORDS, &length)); at++) {
            printf(outcome == SQL_ERROR ? "  error %d " : "  information %d ", code);
            put_wide(state);
            putchar(' ');
            put_wide(words);
            putchar('\n');
        }
    } else if (outcome != SQL_SUCCESS && outcome != SQL_NO_DATA) {
        printf("  error outcome %d\n", outcome);
    }
    return SQL_SUCCEEDED(outcome) || outcome == SQL_NO_DATA;
}

static bool fine_of(SQLRETURN outcome, SQLHSTMT statement) { return fine(outcome, SQL_HANDLE_STMT, statement); }

static bool own_error(const char *words)
{
    printf("  error %s\n", words);
    return false;
}

/* An option of the line by which one connects. */
static bool option(const char *key, char *value, size_t size)
{
    char copy[sizeof like], *rest = strcpy(copy, like), *part;
    while ((part = strsep(&rest, " "))) {
        size_t length = strlen(key);
        if (!strncmp(part, key, length) && part[length] == '=') {
            snprintf(value, size, "%s", part + length + 1);
            return true;
        }
    }
    return false;
}

static bool is_wished(const char *key)
{
    char text[64];
    return option(key, text, sizeof text) && strcmp(text, "off");
}

static SQLHDBC another(void)
{
    char text[1024], schema[64] = "", name[64], secret[64], set[64], init[512] = "";
    SQLHDBC made;
    unsigned options = MULTI_STATEMENTS | (is_wished("found_rows") ? FOUND_ROWS : 0) | (is_wished("compress") ? COMPRESSED : 0) |
                       (is_wished("ignore_space") ? IGNORE_SPACE : 0);
    SQLAllocHandle(SQL_HANDLE_DBC, environment, &made);
    option("database", schema, sizeof schema);
    option("init", init, sizeof init);
    snprintf(text, sizeof text, "Driver={MariaDB Unicode};SERVER=%s;PORT=%u;UID=%s;PWD=%s;DATABASE=%s;CHARSET=%s;OPTION=%u;TCPIP=1%s%s%s%s%s%s", host, port,
             option("user", name, sizeof name) ? name : user, option("password", secret, sizeof secret) ? secret : password, schema,
             option("charset", set, sizeof set) ? set : "utf8mb4", options, is_wished("tls") ? ";FORCETLS=1;SSLVERIFY=0" : "",
             is_wished("interactive") ? ";INTERACTIVE=1" : "", is_wished("cursors") ? ";FORWARDONLY=1;STREAMRS=1" : "", *init ? ";INITSTMT={" : "", init,
             *init ? "}" : "");
    SQLWCHAR *words = wide(text);
    bool in = fine(SQLDriverConnectW(made, NULL, words, SQL_NTS, NULL, 0, NULL, SQL_DRIVER_NOPROMPT), SQL_HANDLE_DBC, made);
    free(words);
    if (in)
        return made;
    SQLFreeHandle(SQL_HANDLE_DBC, made);
    return NULL;
}

static void good_bye(SQLHDBC to)
{
    /* One that is in a transaction is not let go. */
    SQLEndTran(SQL_HANDLE_DBC, to, SQL_ROLLBACK);
    SQLDisconnect(to);
    SQLFreeHandle(SQL_HANDLE_DBC, to);
}

static struct named *find(struct named *all, const char *name)
{
    for (int at = 0; at < NAMES; at++)
        if (!strcmp(all[at].name, name))
            return &all[at];
    return NULL;
}

static void forget(struct named *one)
{
    if (one->statement)
        SQLFreeHandle(SQL_HANDLE_STMT, one->statement);
    memset(one, 0, sizeof *one);
}

/* The place for a name; what had it is gone. */
static struct named *place(struct named *all, const char *name)
{
    struct named *found = find(all, name);
    if (!found)
        found = must(find(all, ""));
    forget(found);
    return found;
}

static void go(void)
{
    for (int at = 0; at < NAMES; at++) {
        forget(&open_results[at]);
        forget(&prepared[at]);
    }
    if (connection)
        good_bye(connection);
    connection = NULL;
}

static struct value argument(const char *text)
{
    struct value value = {.kind = *text};
    const char *rest = text + 2;
    size_t length = value.kind == 'L' ? strtoul(rest, NULL, 10) : strlen(rest);
    value.whole = atoll(rest);
    value.real = atof(rest);
    value.bytes = must(calloc(length + 1, 1));
    if (value.kind == 'L') {
        memset(value.bytes, 'x', length);
    } else if (value.kind == 'b') {
        unsigned byte;
        for (length = 0; sscanf(rest + 2 * length, "%2x", &byte) == 1; length++)
            value.bytes[length] = (char)byte;
    } else {
        strcpy(value.bytes, rest);
    }
    value.length = value.kind == 'n' ? SQL_NULL_DATA : value.kind == 'l' ? SQL_DATA_AT_EXEC : (SQLLEN)length;
    return value;
}

static bool bind(SQLHSTMT statement, unsigned at, SQLSMALLINT way, struct value *value, SQLLEN room)
{
    SQLSMALLINT c = SQL_C_CHAR, kind = SQL_VARCHAR;
    SQLPOINTER where = value->bytes;
    if (value->kind == 'i')
        c = SQL_C_SBIGINT, kind = SQL_BIGINT, where = &value->whole, value->length = 0;
    else if (value->kind == 'd')
        c = SQL_C_DOUBLE, kind = SQL_DOUBLE, where = &value->real, value->length = 0;
    else if (value->kind == 'b')
        c = SQL_C_BINARY, kind = SQL_LONGVARBINARY;
    else if (value->kind == 'l')
        kind = SQL_LONGVARCHAR, where = value;
    SQLULEN size = value->length > 0 ? (SQLULEN)value->length : 255;
    return fine_of(SQLBindParameter(statement, (SQLUSMALLINT)(at + 1), way, c, kind, size, 0, where, room, &value->length), statement);
}

/* `l:` goes ahead, in pieces: words, or a star and how many letters. */
static SQLRETURN send_pieces(SQLHSTMT statement)
{
    SQLPOINTER which;
    SQLRETURN outcome;
    while ((outcome = SQLParamData(statement, &which)) == SQL_NEED_DATA) {
        char *pieces = ((struct value *)which)->bytes;
        for (char *piece; (piece = strsep(&pieces, "|"));) {
            char text[32];
            snprintf(text, sizeof text, "L:%s", piece + 1);
            struct value many = argument(*piece == '*' ? text : "n:");
            bool letters = many.kind == 'L';
            SQLRETURN put = SQLPutData(statement, letters ? many.bytes : piece, letters ? many.length : (SQLLEN)strlen(piece));
            free(many.bytes);
            if (!SQL_SUCCEEDED(put))
                return put;
        }
    }
    return outcome;
}

static void columns(SQLHSTMT statement, SQLSMALLINT count)
{
    static const SQLUSMALLINT numbers[] = {SQL_DESC_DISPLAY_SIZE, SQL_DESC_OCTET_LENGTH, SQL_DESC_UNSIGNED, SQL_DESC_AUTO_UNIQUE_VALUE, SQL_DESC_UPDATABLE},
                              words[] = {SQL_DESC_TYPE_NAME, SQL_DESC_BASE_COLUMN_NAME, SQL_DESC_TABLE_NAME, SQL_DESC_BASE_TABLE_NAME, SQL_DESC_CATALOG_NAME};
    for (SQLUSMALLINT at = 1; at <= count; at++) {
        SQLWCHAR name[300] = {0};
        SQLSMALLINT length, type, digits, can_be_null;
        SQLULEN size;
        SQLDescribeColW(statement, at, name, 300, &length, &type, &size, &digits, &can_be_null);
        printf("  column ");
        put_wide(name);
        printf(" type=%d size=%lu digits=%d null=%d", type, size, digits, can_be_null);
        for (unsigned which = 0; which < sizeof numbers / sizeof *numbers; which++) {
            SQLLEN number = -1;
            SQLColAttributeW(statement, at, numbers[which], NULL, 0, NULL, &number);
            printf(" %ld", number);
        }
        for (unsigned which = 0; which < sizeof words / sizeof *words; which++) {
            memset(name, 0, sizeof name);
            SQLColAttributeW(statement, at, words[which], name, sizeof name, &length, NULL);
            printf(" [");
            put_wide(name);
            putchar(']');
        }
        putchar('\n');
    }
}

/* One value, in as many pieces as it takes. */
static bool column(SQLHSTMT statement, SQLUSMALLINT at)
{
    static char first[4096];
    SQLLEN length = 0, more;
    SQLRETURN outcome = SQLGetData(statement, at, SQL_C_CHAR, first, sizeof first, &length);
    if (!SQL_SUCCEEDED(outcome))
        return fine_of(outcome, statement);
    if (length == SQL_NULL_DATA || length < (SQLLEN)sizeof first) {
        shown(length == SQL_NULL_DATA ? NULL : first, (unsigned long)length);
        return true;
    }
    char *whole = must(malloc((size_t)length + 1));
    memcpy(whole, first, sizeof first - 1);
    outcome = SQLGetData(statement, at, SQL_C_CHAR, whole + sizeof first - 1, length + 2 - (SQLLEN)sizeof first, &more);
    shown(whole, (unsigned long)length);
    free(whole);
    return SQL_SUCCEEDED(outcome) || fine_of(outcome, statement);
}

static bool rows(SQLHSTMT statement, SQLSMALLINT count, unsigned long at_most)
{
    while (at_most--) {
        SQLRETURN outcome = SQLFetch(statement);
        if (outcome == SQL_NO_DATA) {
            printf("  no more\n");
            return true;
        }
        if (!fine_of(outcome, statement))
            return false;
        for (SQLUSMALLINT at = 1; at <= count; at++) {
            printf(at > 1 ? " | " : "  row ");
            if (!column(statement, at))
                return false;
        }
        putchar('\n');
    }
    return true;
}

static bool results(SQLHSTMT statement)
{
    SQLRETURN outcome;
    do {
        SQLSMALLINT count = 0;
        SQLLEN affected = 0;
        SQLNumResultCols(statement, &count);
        if (count) {
            columns(statement, count);
            if (!rows(statement, count, -1ul))
                return false;
        }
        SQLRowCount(statement, &affected);
        printf("  rows=%ld\n", affected);
        outcome = SQLMoreResults(statement);
    } while (SQL_SUCCEEDED(outcome));
    return fine_of(outcome, statement);
}

static SQLHSTMT made(void)
{
    SQLHSTMT statement;
    return fine(SQLAllocHandle(SQL_HANDLE_STMT, connection, &statement), SQL_HANDLE_DBC, connection) ? statement : NULL;
}

static SQLRETURN execute_directly(SQLHSTMT statement, const char *sql)
{
    SQLWCHAR *words = wide(sql);
    SQLRETURN outcome = SQLExecDirectW(statement, words, SQL_NTS);
    free(words);
    return outcome;
}

static bool query(const char *sql)
{
    SQLHSTMT statement = made();
    if (!statement)
        return false;
    bool well = fine_of(execute_directly(statement, sql), statement) && results(statement);
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
    return well;
}

static SQLHSTMT prepare(const char *sql)
{
    SQLHSTMT statement = made();
    if (!statement)
        return NULL;
    SQLWCHAR *words = wide(sql);
    SQLRETURN outcome = SQLPrepareW(statement, words, SQL_NTS);
    free(words);
    if (fine_of(outcome, statement))
        return statement;
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
    return NULL;
}

static bool prepare_as(const char *name, const char *sql)
{
    struct named *where = place(prepared, name);
    SQLSMALLINT parameters = -1, count = -1;
    SQLHSTMT statement = prepare(sql);
    if (!statement)
        return false;
    snprintf(where->name, sizeof where->name, "%s", name);
    where->statement = statement;
    SQLNumParams(statement, &parameters);
    SQLNumResultCols(statement, &count);
    printf("  parameters=%d columns=%d\n", parameters, count);
    columns(statement, count);
    return true;
}

/* Binds them and executes; `sql` where it is not prepared. */
static bool run(SQLHSTMT statement, const char *sql, char **parts, int count)
{
    struct value values[PARTS];
    bool well = true;
    for (int at = 0; at < count; at++) {
        values[at] = argument(parts[at]);
        well = well && bind(statement, (unsigned)at, SQL_PARAM_INPUT, &values[at], 0);
    }
    if (well) {
        SQLRETURN outcome = sql ? execute_directly(statement, sql) : SQLExecute(statement);
        well = fine_of(outcome == SQL_NEED_DATA ? send_pieces(statement) : outcome, statement);
    }
    SQLFreeStmt(statement, SQL_RESET_PARAMS);
    for (int at = 0; at < count; at++)
        free(values[at].bytes);
    return well;
}

static bool execute(SQLHSTMT statement, char **parts, int count)
{
    SQLFreeStmt(statement, SQL_CLOSE);
    return run(statement, NULL, parts, count) && results(statement);
}

static bool call(char **parts, int count)
{
    char sql[256];
    struct value values[PARTS];
    SQLSMALLINT ways[PARTS];
    SQLHSTMT statement = made();
    bool well = statement != NULL;
    snprintf(sql, sizeof sql, "{CALL %s(", parts[0]);
    for (int at = 1; at < count; at++) {
        strcat(sql, at > 1 ? ", ?" : "?");
        char *given = strchr(parts[at], ' ');
        ways[at] = *parts[at] == 'o' ? SQL_PARAM_OUTPUT : parts[at][2] == 'o' ? SQL_PARAM_INPUT_OUTPUT : SQL_PARAM_INPUT;
        values[at] = argument(given ? given + 1 : "n:");
        if (ways[at] != SQL_PARAM_INPUT)
            values[at].bytes = must(realloc(values[at].bytes, BACK));
        well = well && bind(statement, (unsigned)at - 1, ways[at], &values[at], ways[at] == SQL_PARAM_INPUT ? 0 : BACK);
    }
    well = well && fine_of(execute_directly(statement, strcat(sql, ")}")), statement) && results(statement);
    for (int at = 1; at < count; at++) {
        if (well && ways[at] != SQL_PARAM_INPUT) {
            printf("  out %d ", at);
            shown(values[at].length == SQL_NULL_DATA ? NULL : values[at].bytes, (unsigned long)values[at].length);
            putchar('\n');
        }
        free(values[at].bytes);
    }
    if (statement)
        SQLFreeHandle(SQL_HANDLE_STMT, statement);
    return well;
}

/* A column of all rows: words, all with the same room. */
static void bind_column(SQLHSTMT statement, unsigned at, struct value *values, unsigned rows_of_it, unsigned width, char **kept, SQLLEN *lengths)
{
    SQLLEN room = 32;
    for (unsigned row = 0; row < rows_of_it; row++)
        if (values[row * width + at].length >= room)
            room = values[row * width + at].length + 1;
    *kept = must(calloc(rows_of_it, (size_t)room));
    for (unsigned row = 0; row < rows_of_it; row++) {
        struct value *value = &values[row * width + at];
        if (value->length != SQL_NULL_DATA)
            memcpy(*kept + row * (size_t)room, value->bytes, (size_t)value->length);
        lengths[row] = value->length;
    }
    SQLBindParameter(statement, (SQLUSMALLINT)(at + 1), SQL_PARAM_INPUT, SQL_C_CHAR, SQL_VARCHAR, (SQLULEN)room, 0, *kept, room, lengths);
}

/* Many rows of parameters for one statement. */
static bool batch(char **parts, int count)
{
    unsigned width = 0, rows_of_it = (unsigned)count - 1;
    struct value *values = NULL;
    SQLUSMALLINT *outcomes = must(calloc(rows_of_it, sizeof *outcomes));
    SQLULEN done = 0;
    SQLHSTMT statement = prepare(parts[0]);
    if (!statement) {
        free(outcomes);
        return false;
    }
    for (unsigned row = 0; row < rows_of_it; row++) {
        unsigned at = 0;
        for (char *rest = parts[row + 1], *part; rest; at++) {
            char *end = strstr(rest, " | ");
            part = rest;
            rest = end ? (*end = 0, end + 3) : NULL;
            width = row ? width : at + 1;
            values = must(realloc(values, (row * width + at + 1) * sizeof *values));
            values[row * width + at] = argument(part);
        }
    }
    SQLSetStmtAttr(statement, SQL_ATTR_PARAM_BIND_TYPE, (SQLPOINTER)SQL_PARAM_BIND_BY_COLUMN, 0);
    SQLSetStmtAttr(statement, SQL_ATTR_PARAMSET_SIZE, (SQLPOINTER)(uintptr_t)rows_of_it, 0);
    SQLSetStmtAttr(statement, SQL_ATTR_PARAM_STATUS_PTR, outcomes, 0);
    SQLSetStmtAttr(statement, SQL_ATTR_PARAMS_PROCESSED_PTR, &done, 0);
    char **kept = must(calloc(width, sizeof *kept));
    SQLLEN *lengths = must(calloc((size_t)width * rows_of_it, sizeof *lengths));
    for (unsigned at = 0; at < width; at++)
        bind_column(statement, at, values, rows_of_it, width, &kept[at], &lengths[at * rows_of_it]);
    bool well = fine_of(SQLExecute(statement), statement);
    printf("  done=%lu", done);
    for (unsigned row = 0; row < rows_of_it; row++)
        printf(" %u", outcomes[row]);
    putchar('\n');
    well = well && results(statement);
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
    for (unsigned at = 0; at < rows_of_it * width; at++)
        free(values[at].bytes);
    for (unsigned at = 0; at < width; at++)
        free(kept[at]);
    free(kept);
    free(lengths);
    free(values);
    free(outcomes);
    return well;
}

/* Prepared where it has parameters; with `cursors=on`, rows wait on the wire. */
static bool cursor(char **parts, int count)
{
    char *size = parts[0], *name = strsep(&size, " ");
    struct named *where = place(open_results, name);
    SQLHSTMT statement = made();
    if (!statement)
        return false;
    if (!run(statement, parts[1], parts + 2, count - 2)) {
        SQLFreeHandle(SQL_HANDLE_STMT, statement);
        return false;
    }
    snprintf(where->name, sizeof where->name, "%s", name);
    where->statement = statement;
    return true;
}

static bool fetch(char *name)
{
    char *many = name;
    SQLSMALLINT count = 0;
    strsep(&many, " ");
    struct named *from = find(open_results, name);
    if (!from)
        return own_error("not open");
    SQLNumResultCols(from->statement, &count);
    return rows(from->statement, count, strtoul(many, NULL, 10));
}

#include "calls.h"

static bool step(const char *verb, char *rest, bool *known)
{
    char *parts[PARTS], *all = rest;
    int count = 0;
    if (!strcmp(verb, "connect")) {
        go();
        snprintf(like, sizeof like, "%s", rest);
        return (connection = another()) != NULL;
    }
    if (!connection)
        return own_error("not connected");
    if (!strcmp(verb, "query") || !strcmp(verb, "script"))
        return query(rest);
    while (all && count < PARTS) {
        char *end = strstr(all, " :: ");
        parts[count++] = all;
        all = end ? (*end = 0, end + 4) : NULL;
    }
    struct named *found = find(prepared, parts[0]), *opened = find(open_results, parts[0]);
    if (!strcmp(verb, "prepare"))
        return prepare_as(parts[0], parts[1]);
    if (!strcmp(verb, "execute"))
        return found ? execute(found->statement, parts + 1, count - 1) : own_error("not prepared");
    if (!strcmp(verb, "close"))
        return found ? (forget(found), true) : own_error("not prepared");
    if (!strcmp(verb, "call"))
        return call(parts, count);
    if (!strcmp(verb, "batch"))
        return batch(parts, count);
    if (!strcmp(verb, "cursor"))
        return cursor(parts, count);
    if (!strcmp(verb, "fetch"))
        return fetch(parts[0]);
    if (!strcmp(verb, "leave"))
        return opened ? (forget(opened), true) : own_error("not open");
    return other_call(verb, parts, count, known);
}

static void play(const char *path)
{
    char *line = NULL;
    size_t size = 0;
    bool first = true;
    FILE *scenario = must(fopen(path, "r"));
    printf("## %s\n", strrchr(path, '/') + 1);
    while (getline(&line, &size, scenario) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (!*line || *line == '#')
            continue;
        bool known = true;
        if (first && strncmp(line, "connect", 7)) {
            char usual[] = "database=conf tls=off";
            printf("> connect %s\n", usual);
            if (step("connect", usual, &known))
                printf("  ok\n");
        }
        first = false;
        printf("> %s\n", line);
        char *rest = line, *verb = strsep(&rest, " ");
        char nothing[] = "";
        bool well = step(verb, rest ? rest : nothing, &known);
        if (!known)
            printf("  this client has no such call\n");
        else if (well)
            printf("  ok\n");
    }
    go();
    free(line);
    fclose(scenario);
}

int main(void)
{
    char *order = NULL, path[1024];
    size_t size = 0;
    /* By it the driver knows in what bytes letters come and go. */
    setlocale(LC_ALL, "C.UTF-8");
    SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &environment);
    SQLSetEnvAttr(environment, SQL_ATTR_ODBC_VERSION, (SQLPOINTER)SQL_OV_ODBC3, 0);
    while (getline(&order, &size, stdin) > 0) {
        if (sscanf(order, "%63s %u %63s %63s %1023[^\n]", host, &port, user, password, path) != 5)
            return 2;
        play(path);
        printf("## end\n");
        fflush(stdout);
        fprintf(stderr, "## end\n");
    }
    free(order);
    return 0;
}
