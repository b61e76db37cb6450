/* Calls that hardly another library has. */

/* Numbers that differ from moment to moment; what there is to count does not. */
static void without_numbers(const char *words)
{
    printf("  ");
    for (; *words; words++) {
        if (strchr("0123456789.", *words)) {
            putchar('#');
            words += strspn(words, "0123456789.") - 1;
        } else {
            putchar(*words);
        }
    }
    putchar('\n');
}

static bool about(void)
{
    MY_CHARSET_INFO set;
    MYSQL_RES *own = NULL;
    mysql_get_character_set_info(connection, &set);
    if (!mysql_query(connection, "SELECT CONNECTION_ID()"))
        own = mysql_store_result(connection);
    if (!own)
        return complain(connection);
    printf("  server=%s version=%lu protocol=%u host=%s charset=%s collation=%s/%u tls=%s number=%s\n", mysql_get_server_info(connection),
           mysql_get_server_version(connection), mysql_get_proto_info(connection), mysql_get_host_info(connection), set.csname, set.name,
           set.number, mysql_get_ssl_cipher(connection) ? "on" : "off",
           strtoul(mysql_fetch_row(own)[0], NULL, 10) == mysql_thread_id(connection) ? "its own" : "another");
    mysql_free_result(own);
    return true;
}

/* Another connection, which sees its end. */
static bool end_another(void)
{
    MYSQL *other = another();
    if (!other)
        return false;
    /* MySQL 9 has no command for it any more; Millrace has. */
    char text[64];
    snprintf(text, sizeof text, "KILL %lu", mysql_thread_id(other));
    if (mariadb_connection(connection) ? mysql_kill(connection, mysql_thread_id(other)) : mysql_query(connection, text))
        complain(connection);
    /* It ends when the server comes to it. */
    usleep(100000);
    if (mysql_query(other, "SELECT 'still there'"))
        complain(other);
    else
        results(other);
    mysql_close(other);
    return true;
}

/* Its own connection, by another one; the library makes a new one where it may. */
static bool be_ended(void)
{
    char text[64];
    unsigned long before = mysql_thread_id(connection);
    MYSQL *other = another();
    if (!other)
        return false;
    snprintf(text, sizeof text, "KILL %lu", before);
    if (mysql_query(other, text))
        complain(other);
    mysql_close(other);
    usleep(100000);
    if (mysql_ping(connection))
        complain(connection);
    printf("  %s connection\n", mysql_thread_id(connection) == before ? "the same" : "another");
    return true;
}

static void wait_for(MYSQL *from, int status)
{
    struct pollfd one = {.fd = mysql_get_socket(from)};
    one.events = (short)((status & MYSQL_WAIT_READ ? POLLIN : 0) | (status & MYSQL_WAIT_WRITE ? POLLOUT : 0));
    poll(&one, 1, 10000);
}

/* All at once, each on a connection of its own, by the calls that do not wait. */
static bool at_once(char **parts, int count)
{
    MYSQL *all[PARTS] = {0};
    int status[PARTS], failed[PARTS];
    for (int at = 0; at < count; at++) {
        if (!(all[at] = another()))
            return false;
        mysql_options(all[at], MYSQL_OPT_NONBLOCK, 0);
        status[at] = mysql_real_query_start(&failed[at], all[at], parts[at], strlen(parts[at]));
    }
    for (int at = 0; at < count; at++) {
        MYSQL_RES *result = NULL;
        while (status[at]) {
            wait_for(all[at], status[at]);
            status[at] = mysql_real_query_cont(&failed[at], all[at], status[at]);
        }
        if (failed[at]) {
            complain(all[at]);
        } else {
            for (int more = mysql_store_result_start(&result, all[at]); more; more = mysql_store_result_cont(&result, all[at], more))
                wait_for(all[at], more);
            if (result) {
                columns(result);
                rows(result, -1ul);
                mysql_free_result(result);
            }
            said(all[at]);
        }
        mysql_close(all[at]);
    }
    return true;
}

/* A file that is not one: words, given in small pieces, and an error at their end where they say so. */
struct words {
    const char *rest;
    bool breaks;
};

static int words_begin(void **place, const char *name, void *given)
{
    (void)name;
    struct words *words = must(malloc(sizeof *words));
    words->rest = given;
    words->breaks = !strncmp(given, "break:", 6);
    words->rest += words->breaks ? 6 : 0;
    *place = words;
    return !strcmp(given, "refuse");
}

static int words_read(void *place, char *buffer, unsigned size)
{
    struct words *words = place;
    unsigned left = (unsigned)strlen(words->rest);
    if (!left)
        return words->breaks ? -1 : 0;
    size = size < 5 ? size : 5;
    size = size < left ? size : left;
    for (unsigned at = 0; at < size; at++)
        buffer[at] = words->rest[at] == ';' ? '\n' : words->rest[at];
    words->rest += size;
    return (int)size;
}

static void words_end(void *place)
{
    free(place);
}

static int words_error(void *place, char *text, unsigned size)
{
    (void)place;
    snprintf(text, size, "these words break off");
    return 4711;
}

static bool load(const char *words, const char *sql)
{
    mysql_set_local_infile_handler(connection, words_begin, words_read, words_end, words_error, (void *)words);
    bool fine = query(sql);
    mysql_set_local_infile_default(connection);
    return fine;
}

static bool outcome(int failed)
{
    if (failed)
        return complain(connection);
    said(connection);
    return true;
}

static bool shown_result(MYSQL_RES *result, unsigned long at_most)
{
    if (!result)
        return complain(connection);
    columns(result);
    rows(result, at_most);
    mysql_free_result(result);
    return true;
}

/* How they are called: the rest of what it says of these columns the library has not read. */
static bool processes(void)
{
    MYSQL_RES *result = mysql_list_processes(connection);
    if (!result)
        return complain(connection);
    for (unsigned at = 0; at < mysql_num_fields(result); at++)
        printf("  column %s\n", mysql_fetch_field_direct(result, at)->name);
    mysql_free_result(result);
    return true;
}

static bool other_call(const char *verb, char **parts, int count, bool *known)
{
    bool bare = !*parts[0];
    if (!strcmp(verb, "ping"))
        return outcome(mysql_ping(connection));
    if (!strcmp(verb, "use"))
        return outcome(mysql_select_db(connection, parts[0]));
    if (!strcmp(verb, "begin") && bare)
        return query("BEGIN");
    if (!strcmp(verb, "commit") && bare)
        return outcome(mysql_commit(connection));
    if (!strcmp(verb, "rollback") && bare)
        return outcome(mysql_rollback(connection));
    if (!strcmp(verb, "autocommit"))
        return outcome(mysql_autocommit(connection, !strcmp(parts[0], "on")));
    if (!strcmp(verb, "reset")) {
        bool fine = outcome(mysql_reset_connection(connection));
        /* It crashes over statements of before. */
        for (int at = 0; at < NAMES; at++)
            forget(open_results, open_results[at].name);
        return fine;
    }
    if (!strcmp(verb, "change") && count == 3)
        return outcome(mysql_change_user(connection, parts[0], parts[1], *parts[2] ? parts[2] : NULL));
    if (!strcmp(verb, "charset"))
        return outcome(mysql_set_character_set(connection, parts[0])) && about();
    if (!strcmp(verb, "about"))
        return about();
    if (!strcmp(verb, "stat")) {
        const char *words = mysql_stat(connection);
        without_numbers(words ? words : mysql_error(connection));
        return true;
    }
    if (!strcmp(verb, "escape")) {
        char text[1024];
        printf("  ");
        shown(text, mysql_real_escape_string(connection, text, parts[0], strlen(parts[0])));
        putchar('\n');
        return true;
    }
    if (!strcmp(verb, "fields") && count == 2)
        return shown_result(mysql_list_fields(connection, parts[0], *parts[1] ? parts[1] : NULL), 0);
    if (!strcmp(verb, "processes"))
        return processes();
    if (!strcmp(verb, "several"))
        return outcome(mysql_set_server_option(connection, !strcmp(parts[0], "on") ? MYSQL_OPTION_MULTI_STATEMENTS_ON : MYSQL_OPTION_MULTI_STATEMENTS_OFF));
    if (!strcmp(verb, "async"))
        return at_once(parts, count);
    if (!strcmp(verb, "kill"))
        return end_another();
    if (!strcmp(verb, "be_killed"))
        return be_ended();
    if (!strcmp(verb, "load") && count == 2)
        return load(parts[0], parts[1]);
    *known = false;
    return false;
}
