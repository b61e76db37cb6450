/* Runs scenarios through MariaDB's library for C (libmariadb) and prints all that the client can see.
 *
 * Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.
 */
#define _GNU_SOURCE
#include <mysql.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 64, NAMES = 16, COLUMNS = 1024, SHORT = 300 };

/* A parameter, or a row of them. */
struct value {
    char kind;
    long long whole;
    double real;
    char *bytes;
    unsigned long length;
};

/* What is prepared, or read piece by piece, by its name. */
struct named {
    char name[32];
    MYSQL_STMT *statement;
    MYSQL_RES *result;
};

static MYSQL *connection;
static struct named prepared[NAMES], open_results[NAMES];
/* The line of the scenario by which the connection was made, and who made it: others are made like it. */
static char like[1024], host[64], user[64], password[64];
static unsigned port;

static const char *const NOT_CONNECTED = "not connected", *const NOT_PREPARED = "not prepared";

static void *must(void *memory)
{
    if (!memory) {
        perror("memory");
        exit(1);
    }
    return memory;
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

static void columns(MYSQL_RES *result)
{
    MYSQL_FIELD *field = mysql_fetch_fields(result);
    for (unsigned at = 0; at < mysql_num_fields(result); at++, field++)
        printf("  column %s org=%s table=%s/%s db=%s type=%d flags=%u length=%lu decimals=%u charset=%u\n", field->name, field->org_name,
               field->table, field->org_table, field->db, field->type, field->flags, field->length, field->decimals, field->charsetnr);
}

static void rows(MYSQL_RES *result, unsigned long at_most)
{
    MYSQL_ROW row;
    while (at_most-- && (row = mysql_fetch_row(result))) {
        unsigned long *lengths = mysql_fetch_lengths(result);
        for (unsigned at = 0; at < mysql_num_fields(result); at++) {
            printf(at ? " | " : "  row ");
            shown(row[at], lengths[at]);
        }
        putchar('\n');
    }
}

static int by_name(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* What the last answer says besides rows. Servers name what they have tracked in any order. */
static void said(MYSQL *from)
{
    const char *data, *info = mysql_info(from);
    size_t length;
    char *tracked[64];
    int many = 0;
    printf("  affected=%lld insert_id=%llu warnings=%u status=%u info=%s\n", (long long)mysql_affected_rows(from),
           (unsigned long long)mysql_insert_id(from), mysql_warning_count(from), from->server_status, info ? info : "none");
    for (int kind = SESSION_TRACK_BEGIN; kind <= SESSION_TRACK_END; kind++)
        for (int none = mysql_session_track_get_first(from, kind, &data, &length); !none && many < 64;
             none = mysql_session_track_get_next(from, kind, &data, &length)) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)length, data);
            /* A variable's value comes behind its name. */
            bool pair = kind == SESSION_TRACK_SYSTEM_VARIABLES && !mysql_session_track_get_next(from, kind, &data, &length);
            if (asprintf(&tracked[many++], "%d %s %.*s", kind, name, pair ? (int)length : 0, pair ? data : "") < 0)
                exit(1);
        }
    qsort(tracked, (size_t)many, sizeof *tracked, by_name);
    for (int at = 0; at < many; at++) {
        printf("  tracked %s\n", tracked[at]);
        free(tracked[at]);
    }
}

static bool complain(MYSQL *from)
{
    printf("  error %u %s %s\n", mysql_errno(from), mysql_sqlstate(from), mysql_error(from));
    return false;
}

static bool complain_of(MYSQL_STMT *statement)
{
    printf("  error %u %s %s\n", mysql_stmt_errno(statement), mysql_stmt_sqlstate(statement), mysql_stmt_error(statement));
    return false;
}

static bool own_error(const char *words)
{
    printf("  error %s\n", words);
    return false;
}

static bool results(MYSQL *from)
{
    int more;
    do {
        MYSQL_RES *result = mysql_store_result(from);
        if (result) {
            columns(result);
            rows(result, -1ul);
            mysql_free_result(result);
        } else if (mysql_errno(from)) {
            return complain(from);
        }
        said(from);
        more = mysql_next_result(from);
    } while (!more);
    return more < 0 || complain(from);
}

static bool query(const char *sql)
{
    return mysql_real_query(connection, sql, strlen(sql)) ? complain(connection) : results(connection);
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

static MYSQL *another(void)
{
    char text[512], name[64], secret[64], schema[64];
    unsigned files = !option("infile", text, sizeof text);
    my_bool on = 1, off = 0;
    unsigned long much = 256 << 20, flags = CLIENT_MULTI_STATEMENTS | CLIENT_MULTI_RESULTS;
    MYSQL *made = must(mysql_init(NULL));
    mysql_options(made, MYSQL_OPT_LOCAL_INFILE, &files);
    mysql_options(made, MYSQL_OPT_MAX_ALLOWED_PACKET, &much);
    mysql_options(made, MYSQL_SET_CHARSET_NAME, option("charset", text, sizeof text) ? text : "utf8mb4");
    mysql_options(made, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &off);
    if (option("tls", text, sizeof text) && !strcmp(text, "on"))
        mysql_options(made, MYSQL_OPT_SSL_ENFORCE, &on);
    if (option("compress", text, sizeof text))
        mysql_options(made, MYSQL_OPT_COMPRESS, NULL);
    if (option("reconnect", text, sizeof text))
        mysql_options(made, MYSQL_OPT_RECONNECT, &on);
    if (option("init", text, sizeof text))
        mysql_options(made, MYSQL_INIT_COMMAND, text);
    flags |= option("found_rows", text, sizeof text) ? CLIENT_FOUND_ROWS : 0;
    flags |= option("ignore_space", text, sizeof text) ? CLIENT_IGNORE_SPACE : 0;
    flags |= option("interactive", text, sizeof text) ? CLIENT_INTERACTIVE : 0;
    if (!option("database", schema, sizeof schema))
        *schema = 0;
    if (mysql_real_connect(made, host, option("user", name, sizeof name) ? name : user,
                           option("password", secret, sizeof secret) ? secret : password, *schema ? schema : NULL, port, NULL, flags))
        return made;
    complain(made);
    mysql_close(made);
    return NULL;
}

static struct named *find(struct named *all, const char *name)
{
    for (int at = 0; at < NAMES; at++)
        if (!strcmp(all[at].name, name))
            return &all[at];
    return NULL;
}

/* The place for a name; what had it is gone. */
static struct named *place(struct named *all, const char *name)
{
    struct named *found = find(all, name);
    if (!found)
        found = must(find(all, ""));
    if (found->statement)
        mysql_stmt_close(found->statement);
    if (found->result)
        mysql_free_result(found->result);
    memset(found, 0, sizeof *found);
    snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

static void forget(struct named *all, const char *name)
{
    *place(all, name)->name = 0;
}

static void go(void)
{
    for (int at = 0; at < NAMES; at++) {
        forget(open_results, open_results[at].name);
        forget(prepared, prepared[at].name);
    }
    if (connection)
        mysql_close(connection);
    connection = NULL;
}

static struct value argument(const char *text)
{
    struct value value = {.kind = *text};
    const char *rest = text + 2;
    value.whole = atoll(rest);
    value.real = atof(rest);
    value.length = strlen(rest);
    if (value.kind == 'L')
        value.length = (unsigned long)value.whole;
    value.bytes = must(calloc(value.length + 1, 1));
    if (value.kind == 'L') {
        memset(value.bytes, 'x', value.length);
    } else if (value.kind == 'b') {
        unsigned byte;
        for (value.length = 0; sscanf(rest + 2 * value.length, "%2x", &byte) == 1; value.length++)
            value.bytes[value.length] = (char)byte;
    } else {
        strcpy(value.bytes, rest);
    }
    return value;
}

static MYSQL_BIND bound(struct value *value)
{
    MYSQL_BIND bind = {.buffer = value->bytes, .buffer_length = value->length, .length = &value->length, .buffer_type = MYSQL_TYPE_STRING};
    if (value->kind == 'i')
        bind.buffer_type = MYSQL_TYPE_LONGLONG, bind.buffer = &value->whole;
    else if (value->kind == 'd')
        bind.buffer_type = MYSQL_TYPE_DOUBLE, bind.buffer = &value->real;
    else if (value->kind == 'n')
        bind.buffer_type = MYSQL_TYPE_NULL;
    else if (value->kind == 'b' || value->kind == 'l')
        bind.buffer_type = MYSQL_TYPE_BLOB;
    return bind;
}

/* `l:` goes ahead, in pieces: words, or a star and how many letters. */
static bool send_ahead(MYSQL_STMT *statement, unsigned at, char *pieces)
{
    bool fine = true;
    for (char *piece; fine && (piece = strsep(&pieces, "|"));) {
        char text[32];
        snprintf(text, sizeof text, "L:%s", piece + 1);
        struct value many = argument(*piece == '*' ? text : "n:");
        bool letters = many.kind == 'L';
        fine = !mysql_stmt_send_long_data(statement, at, letters ? many.bytes : piece, letters ? many.length : strlen(piece));
        free(many.bytes);
    }
    return fine;
}

/* Rows, with values as the library tells them in words. */
static bool fetched(MYSQL_STMT *statement, unsigned long at_most)
{
    unsigned count = mysql_stmt_field_count(statement);
    static char buffers[COLUMNS][SHORT];
    static MYSQL_BIND binds[COLUMNS];
    static unsigned long lengths[COLUMNS];
    static my_bool nulls[COLUMNS];
    memset(binds, 0, sizeof binds);
    for (unsigned at = 0; at < count; at++)
        binds[at] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING, .buffer = buffers[at], .buffer_length = SHORT, .length = &lengths[at], .is_null = &nulls[at]};
    if (mysql_stmt_bind_result(statement, binds))
        return complain_of(statement);
    while (at_most--) {
        int outcome = mysql_stmt_fetch(statement);
        if (outcome == MYSQL_NO_DATA) {
            printf("  no more\n");
            return true;
        }
        if (outcome == 1)
            return complain_of(statement);
        for (unsigned at = 0; at < count; at++) {
            printf(at ? " | " : "  row ");
            char *whole = buffers[at];
            if (!nulls[at] && lengths[at] > SHORT) {
                unsigned long length;
                whole = must(malloc(lengths[at]));
                MYSQL_BIND all = {.buffer_type = MYSQL_TYPE_STRING, .buffer = whole, .buffer_length = lengths[at], .length = &length, .is_null = &nulls[at]};
                mysql_stmt_fetch_column(statement, &all, at, 0);
            }
            shown(nulls[at] ? NULL : whole, lengths[at]);
            if (whole != buffers[at])
                free(whole);
        }
        putchar('\n');
    }
    return true;
}

static bool run(MYSQL_STMT *statement, char **parts, int count)
{
    struct value values[PARTS];
    MYSQL_BIND binds[PARTS];
    bool fine = true;
    for (int at = 0; at < count; at++) {
        values[at] = argument(parts[at]);
        binds[at] = bound(&values[at]);
    }
    if (count && mysql_stmt_bind_param(statement, binds))
        fine = complain_of(statement);
    for (int at = 0; fine && at < count; at++)
        if (values[at].kind == 'l' && !send_ahead(statement, (unsigned)at, parts[at] + 2))
            fine = complain_of(statement);
    if (fine && mysql_stmt_execute(statement))
        fine = complain_of(statement);
    for (int at = 0; at < count; at++)
        free(values[at].bytes);
    return fine;
}

static bool results_of(MYSQL_STMT *statement)
{
    int more;
    do {
        if (mysql_stmt_field_count(statement)) {
            MYSQL_RES *about = mysql_stmt_result_metadata(statement);
            columns(about);
            mysql_free_result(about);
            if (mysql_stmt_store_result(statement))
                return complain_of(statement);
            printf("  %llu rows\n", (unsigned long long)mysql_stmt_num_rows(statement));
            if (!fetched(statement, -1ul))
                return false;
            mysql_stmt_free_result(statement);
        }
        printf("  affected=%lld insert_id=%llu warnings=%u status=%u\n", (long long)mysql_stmt_affected_rows(statement),
               (unsigned long long)mysql_stmt_insert_id(statement), mysql_warning_count(connection), connection->server_status);
        more = mysql_stmt_next_result(statement);
    } while (!more);
    return more < 0 || complain_of(statement);
}

static MYSQL_STMT *prepare(const char *sql)
{
    MYSQL_STMT *statement = must(mysql_stmt_init(connection));
    if (!mysql_stmt_prepare(statement, sql, strlen(sql)))
        return statement;
    complain_of(statement);
    mysql_stmt_close(statement);
    return NULL;
}

static bool prepare_as(const char *name, const char *sql)
{
    struct named *where = place(prepared, name);
    *where->name = 0;
    MYSQL_STMT *statement = prepare(sql);
    if (!statement)
        return false;
    snprintf(where->name, sizeof where->name, "%s", name);
    where->statement = statement;
    MYSQL_RES *about = mysql_stmt_result_metadata(statement);
    printf("  parameters=%lu columns=%u warnings=%u\n", mysql_stmt_param_count(statement), mysql_stmt_field_count(statement), mysql_warning_count(connection));
    if (about) {
        columns(about);
        mysql_free_result(about);
    }
    return true;
}

/* OUT parameters are a result of their own. */
static bool call(char **parts, int count)
{
    char sql[256];
    snprintf(sql, sizeof sql, "CALL %s(", parts[0]);
    for (int at = 1; at < count; at++) {
        strcat(sql, at > 1 ? ", ?" : "?");
        char *value = strchr(parts[at], ' ');
        parts[at] = value ? value + 1 : "n:";
    }
    MYSQL_STMT *statement = prepare(strcat(sql, ")"));
    bool fine = statement && run(statement, parts + 1, count - 1) && results_of(statement);
    if (statement)
        mysql_stmt_close(statement);
    return fine;
}

#include "batch.h"

/* By a cursor of the server; without, rows that wait on the wire. */
static bool cursor(char **parts, int count)
{
    char *size = parts[0], *name = strsep(&size, " "), text[8];
    unsigned long type = CURSOR_TYPE_READ_ONLY, rows_at_once = strtoul(size, NULL, 10);
    struct named *where = place(open_results, name);
    /* Not where an error comes behind the columns: the library crashes over that, also before servers. */
    bool by_server = option("cursors", text, sizeof text) && !strcmp(text, "on") && !strstr(parts[1], "(SELECT ");
    if (!by_server && count == 2) {
        if (mysql_query(connection, parts[1]) || !(where->result = mysql_use_result(connection))) {
            *where->name = 0;
            return complain(connection);
        }
        return true;
    }
    if (!(where->statement = prepare(parts[1]))) {
        *where->name = 0;
        return false;
    }
    if (by_server) {
        mysql_stmt_attr_set(where->statement, STMT_ATTR_CURSOR_TYPE, &type);
        mysql_stmt_attr_set(where->statement, STMT_ATTR_PREFETCH_ROWS, &rows_at_once);
    }
    if (run(where->statement, parts + 2, count - 2))
        return true;
    forget(open_results, name);
    return false;
}

static bool fetch(char *name)
{
    char *count = name;
    strsep(&count, " ");
    struct named *from = find(open_results, name);
    if (!from)
        return own_error("not open");
    if (from->statement)
        return fetched(from->statement, strtoul(count, NULL, 10));
    rows(from->result, strtoul(count, NULL, 10));
    return !mysql_errno(connection) || complain(connection);
}

#include "calls.h"

/* Carries a step out and says what it saw; whether it went well. */
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
        return own_error(NOT_CONNECTED);
    if (!strcmp(verb, "query") || !strcmp(verb, "script"))
        return query(rest);
    while (all && count < PARTS) {
        char *end = strstr(all, " :: ");
        parts[count++] = all;
        all = end ? (*end = 0, end + 4) : NULL;
    }
    struct named *found = find(prepared, parts[0]);
    if (!strcmp(verb, "prepare"))
        return prepare_as(parts[0], parts[1]);
    if (!strcmp(verb, "execute"))
        return found && found->statement ? run(found->statement, parts + 1, count - 1) && results_of(found->statement) : own_error(NOT_PREPARED);
    if (!strcmp(verb, "close")) {
        if (!found)
            return own_error(NOT_PREPARED);
        forget(prepared, parts[0]);
        return true;
    }
    if (!strcmp(verb, "call"))
        return call(parts, count);
    if (!strcmp(verb, "batch"))
        return batch(parts, count);
    if (!strcmp(verb, "cursor"))
        return cursor(parts, count);
    if (!strcmp(verb, "fetch"))
        return fetch(parts[0]);
    if (!strcmp(verb, "leave")) {
        if (!find(open_results, parts[0]))
            return own_error("not open");
        forget(open_results, parts[0]);
        return true;
    }
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
        bool fine = step(verb, rest ? rest : nothing, &known);
        if (!known)
            printf("  this client has no such call\n");
        else if (fine)
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
