/* An application that connects for each request: connects, says what its framework says first, reads some rows by their keys, and goes.
 *
 *   requests HOST PORT USER PASSWORD SCHEMA REQUESTS READS CA [STATEMENT ...]
 *
 * prints the microseconds that a request took, the mean of all. CA is the file of who has signed the server's certificate, or - for
 * connections without TLS. (Without such a file the library reads all authorities of the system for each connection, 17 ms of them.) */
#include <mariadb/mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MYSQL *mysql;

static void die(const char *what) {
  fprintf(stderr, "%s: %s\n", what, mysql_error(mysql));
  exit(1);
}

static void ask(const char *sql) {
  if (mysql_query(mysql, sql)) die(sql);
  MYSQL_RES *rows = mysql_store_result(mysql);
  if (rows) mysql_free_result(rows);
}

int main(int argc, char **argv) {
  if (argc < 9) {
    fprintf(stderr, "usage: requests HOST PORT USER PASSWORD SCHEMA REQUESTS READS CA [STATEMENT ...]\n");
    return 2;
  }
  int requests = atoi(argv[6]), reads = atoi(argv[7]), tls = strcmp(argv[8], "-") != 0;
  my_bool off = 0, on = 1;
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int n = 0; n < requests; n++) {
    mysql = mysql_init(NULL);
    mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, tls ? &on : &off);
    if (tls) mysql_optionsv(mysql, MYSQL_OPT_SSL_CA, argv[8]);
    mysql_optionsv(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &off);
    if (!mysql_real_connect(mysql, argv[1], argv[3], argv[4], argv[5], (unsigned)atoi(argv[2]), NULL, 0)) die("connect");
    for (int at = 9; at < argc; at++) ask(argv[at]);
    for (int read = 0; read < reads; read++) {
      char sql[64];
      snprintf(sql, sizeof sql, "SELECT c FROM sbtest1 WHERE id = %d", 1 + (n * 7 + read * 131) % 20000);
      ask(sql);
    }
    mysql_close(mysql);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("%.1f\n", ((ended.tv_sec - begun.tv_sec) * 1e6 + (ended.tv_nsec - begun.tv_nsec) / 1e3) / requests);
  return 0;
}
