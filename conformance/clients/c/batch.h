/* Many rows of parameters for one statement: at once where the server has MariaDB's bulk execute, else one after the other. */

/* A column of all rows; those without a value are said to be so by an indicator of their own. */
struct column {
    char kind;
    long long *whole;
    double *real;
    char **bytes;
    unsigned long *lengths;
    char *indicators;
};

static bool bulk(MYSQL_STMT *statement, struct value *values, unsigned rows_of_it, unsigned width)
{
    MYSQL_BIND *binds = must(calloc(width, sizeof *binds));
    struct column *all = must(calloc(width, sizeof *all));
    for (unsigned at = 0; at < width; at++) {
        struct column *column = &all[at];
        column->whole = must(calloc(rows_of_it, sizeof *column->whole));
        column->real = must(calloc(rows_of_it, sizeof *column->real));
        column->bytes = must(calloc(rows_of_it, sizeof *column->bytes));
        column->lengths = must(calloc(rows_of_it, sizeof *column->lengths));
        column->indicators = must(calloc(rows_of_it, 1));
        for (unsigned row = 0; row < rows_of_it; row++) {
            struct value *value = &values[row * width + at];
            char kind = value->kind == 'i' || value->kind == 'd' ? value->kind : 's';
            column->whole[row] = value->whole;
            column->real[row] = value->real;
            column->bytes[row] = value->bytes;
            column->lengths[row] = value->length;
            column->indicators[row] = value->kind == 'n' ? STMT_INDICATOR_NULL : STMT_INDICATOR_NONE;
            /* One type for all: words where they differ. */
            if (value->kind != 'n')
                column->kind = !column->kind || column->kind == kind ? kind : 's';
        }
        binds[at] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING, .buffer = column->bytes, .length = column->lengths, .u.indicator = column->indicators};
        if (column->kind == 'i')
            binds[at].buffer_type = MYSQL_TYPE_LONGLONG, binds[at].buffer = column->whole;
        else if (column->kind == 'd')
            binds[at].buffer_type = MYSQL_TYPE_DOUBLE, binds[at].buffer = column->real;
    }
    bool fine = !mysql_stmt_attr_set(statement, STMT_ATTR_ARRAY_SIZE, &rows_of_it) && !mysql_stmt_bind_param(statement, binds) &&
                !mysql_stmt_execute(statement);
    fine = fine ? results_of(statement) : complain_of(statement);
    for (unsigned at = 0; at < width; at++) {
        free(all[at].whole);
        free(all[at].real);
        free(all[at].bytes);
        free(all[at].lengths);
        free(all[at].indicators);
    }
    free(all);
    free(binds);
    return fine;
}

static bool batch(char **parts, int count)
{
    unsigned width = 0, rows_of_it = (unsigned)count - 1;
    unsigned int extended = 0;
    struct value *values = NULL;
    MYSQL_STMT *statement = prepare(parts[0]);
    if (!statement)
        return false;
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
    mariadb_get_infov(connection, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &extended);
    bool at_once = extended & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32), fine = true;
    printf("  %s\n", at_once ? "at once" : "one after the other");
    if (at_once) {
        fine = bulk(statement, values, rows_of_it, width);
    } else {
        for (unsigned row = 0; fine && row < rows_of_it; row++) {
            MYSQL_BIND binds[PARTS];
            for (unsigned at = 0; at < width; at++)
                binds[at] = bound(&values[row * width + at]);
            fine = !mysql_stmt_bind_param(statement, binds) && !mysql_stmt_execute(statement);
            fine = fine ? results_of(statement) : complain_of(statement);
        }
    }
    for (unsigned at = 0; at < rows_of_it * width; at++)
        free(values[at].bytes);
    free(values);
    mysql_stmt_close(statement);
    return fine;
}
