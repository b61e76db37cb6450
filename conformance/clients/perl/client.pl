# Runs scenarios through DBD::mysql or DBD::MariaDB and prints all that the client can see.
#
#   perl client.pl mysql|mariadb
#
# The first writes parameters into the text, the second has the server prepare statements. Each line that it reads is HOST PORT USER PASSWORD SCENARIO;
# what the client saw ends with a line "## end", here and among the complaints.
use strict;
use warnings;
use DBI;
use Digest::SHA qw(sha256_hex);

my $driver = $ARGV[0] eq 'mysql' ? 'mysql' : 'MariaDB';
my $prefix = lc $driver;
my ($host, $port, $user, $password, %like, $connection, %prepared, %open);
# With the line of this file behind it.
$SIG{__WARN__} = sub { my $words = shift; $words =~ s/ at \S+ line \d+.*//s; print "  warning $words\n" };

sub shown {
    my $value = shift;
    return 'undef' unless defined $value;
    return 'list ' . join ',', @$value if ref $value eq 'ARRAY';
    my $kind = utf8::is_utf8($value) ? 'text' : 'bytes';
    utf8::encode($value) if $kind eq 'text';
    return "$kind len=" . length($value) . ' sha256=' . substr(sha256_hex($value), 0, 16) if length $value > 200;
    $value =~ s/([^ !#-\[\]-~])/sprintf '\\x%02x', ord $1/ge;
    return "$kind \"$value\"";
}

sub row { print '  row ', join(' | ', map { shown($_) } @_), "\n" }

sub argument {
    my ($kind, $rest) = split /:/, $_[0], 2;
    return [$rest, DBI::SQL_BIGINT()] if $kind eq 'i';
    return [$rest, DBI::SQL_DOUBLE()] if $kind eq 'd';
    return [undef, DBI::SQL_VARCHAR()] if $kind eq 'n';
    return [pack('H*', $rest), DBI::SQL_BLOB()] if $kind eq 'b';
    return ['x' x $rest, DBI::SQL_VARCHAR()] if $kind eq 'L';
    $rest = join '', map { /^\*(\d+)/ ? 'x' x $1 : $_ } split /\|/, $rest if $kind eq 'l';
    # Words of the scenario are in UTF-8; DBD::MariaDB wants to be told.
    utf8::decode($rest) if $driver eq 'MariaDB';
    return [$rest, DBI::SQL_VARCHAR()];
}

sub another {
    my $more = '';
    $more .= ";${prefix}_local_infile=" . (($like{infile} // '') eq 'off' ? 0 : 1);
    $more .= ";${prefix}_compression=1" if $like{compress};
    $more .= ";${prefix}_ssl=1" if ($like{tls} // '') eq 'on';
    $more .= ";${prefix}_client_found_rows=" . ($like{found_rows} ? 1 : 0);
    $more .= ";${prefix}_init_command=$like{init}" if $like{init};
    my %utf8 = $driver eq 'mysql' ? (mysql_enable_utf8mb4 => 1) : ();
    my $made = DBI->connect("DBI:$driver:database=" . ($like{database} // '') . ";host=$host;port=$port;${prefix}_multi_statements=1$more",
        $like{user} // $user, $like{password} // $password, { RaiseError => 1, PrintError => 0, AutoCommit => 1, %utf8 });
    $made->{"${prefix}_auto_reconnect"} = $like{reconnect} ? 1 : 0;
    $made->{"${prefix}_server_prepare"} = 1 if $driver eq 'MariaDB';
    return $made;
}

sub leave {
    %prepared = %open = ();
    $connection->disconnect if $connection;
    undef $connection;
}

sub told {
    my ($statement, $rows) = @_;
    print '  rows=', $rows // 'undef', ' insert_id=', $statement->{"${prefix}_insertid"} // 'undef', ' warnings=',
        $statement->{"${prefix}_warning_count"} // 'undef', ' info=', $connection->{"${prefix}_info"} // 'undef', "\n";
}

sub columns {
    my $statement = shift;
    my @about = map { $statement->{$_} // [] } 'NAME', 'TYPE', 'PRECISION', 'SCALE', 'NULLABLE',
        map { "${prefix}_$_" } qw(table type_name is_pri_key is_auto_increment is_blob is_num length);
    for my $at (0 .. $statement->{NUM_OF_FIELDS} - 1) {
        print '  column ', join(' ', map { my $word = $_->[$at] // '-'; utf8::encode($word) if utf8::is_utf8($word); $word } @about), "\n";
    }
}

sub results {
    my ($statement, $rows) = @_;
    {
        if ($statement->{NUM_OF_FIELDS}) {
            columns($statement);
            while (my @row = $statement->fetchrow_array) { row(@row) }
        }
        told($statement, $rows);
        redo if $statement->more_results;
    }
}

sub run {
    my ($statement, @values) = @_;
    my $at = 0;
    $statement->bind_param(++$at, @$_) for map { argument($_) } @values;
    return $statement->execute;
}

sub query {
    my $sql = shift;
    utf8::decode($sql);
    my $statement = $connection->prepare($sql);
    results($statement, $statement->execute);
}

# All at once, each on a connection of its own.
sub async {
    my @all = map { my $one = another(); [$one, $one->prepare($_, { "${prefix}_async" => 1 })] } @_;
    $_->[1]->execute for @all;
    for my $one (@all) {
        my ($own, $statement) = @$one;
        my $ready = "${prefix}_async_ready";
        select undef, undef, undef, 0.01 until $statement->$ready;
        eval {
            my $result = "${prefix}_async_result";
            my $rows = $statement->$result;
            if ($statement->{NUM_OF_FIELDS}) {
                while (my @row = $statement->fetchrow_array) { row(@row) }
            }
            print "  rows=$rows\n";
        };
        print '  error ', $own->err, ' ', $own->state, ' ', $own->errstr, "\n" if $@;
        $own->disconnect;
    }
}

my %CALLS = (
    query => \&query,
    script => \&query,
    exec => sub { my $rows = $connection->do($_[0]); told($connection, $rows) },
    prepare => sub {
        # It crashes over what a procedure gives back by its parameters, also before servers.
        return 'no such call' if $driver eq 'MariaDB' && $_[1] =~ /^CALL/;
        $prepared{$_[0]} = $connection->prepare($_[1]);
        return '';
    },
    execute => sub {
        my $statement = $prepared{+shift} // die "not prepared\n";
        results($statement, run($statement, @_));
    },
    close => sub { (delete $prepared{$_[0]} // die "not prepared\n")->finish },
    cursor => sub {
        # It waits for ever when it leaves rows of a prepared statement on the wire, also before servers.
        return 'no such call' if $driver eq 'MariaDB';
        my ($name, $sql, @values) = @_;
        $name =~ s/ .*//;
        my $statement = $open{$name} = $connection->prepare($sql, { "${prefix}_use_result" => 1 });
        run($statement, @values);
    },
    fetch => sub {
        my ($name, $count) = split / /, $_[0];
        my $statement = $open{$name} // die "not open\n";
        while ($count--) {
            my @row = $statement->fetchrow_array;
            return print "  no more\n" unless @row;
            row(@row);
        }
    },
    leave => sub { (delete $open{$_[0]} // die "not open\n")->finish },
    ping => sub { print '  ', $connection->ping ? 1 : 0, "\n" },
    begin => sub { return 'no such call' if $_[0]; $connection->begin_work },
    commit => sub { return 'no such call' if $_[0]; $connection->commit },
    rollback => sub { return 'no such call' if $_[0]; $connection->rollback },
    autocommit => sub { $connection->{AutoCommit} = $_[0] eq 'on' ? 1 : 0 },
    use => sub { $connection->do("USE `$_[0]`") },
    escape => sub { print '  ', shown($connection->quote($_[0])), "\n" },
    stat => sub { my $words = $connection->{"${prefix}_stat"}; $words =~ s/[\d.]+/#/g; print "  $words\n" },
    about => sub {
        print '  ', join(' ', map { $connection->{"${prefix}_$_"} // '-' } qw(serverinfo serverversion hostinfo protoinfo)), ' own=',
            $connection->selectrow_array('SELECT CONNECTION_ID()') == $connection->{$driver eq 'mysql' ? 'mysql_thread_id' : 'mariadb_thread_id'}, "\n";
    },
    fields => sub {
        return 'no such call' if $_[1];
        my $about = $connection->column_info(undef, undef, $_[0], '%');
        while (my @row = $about->fetchrow_array) { row(@row) }
    },
    async => \&async,
    be_killed => sub {
        my $before = $connection->{"${prefix}_thread_id"};
        my $other = another();
        $other->do("KILL $before");
        $other->disconnect;
        select undef, undef, undef, 0.1;
        print '  ', $connection->ping ? 1 : 0, ' ', $connection->{"${prefix}_thread_id"} == $before ? 'the same' : 'another', " connection\n";
    },
);

sub step {
    my ($verb, $rest) = @_;
    if ($verb eq 'connect') {
        leave();
        %like = map { split /=/, $_, 2 } split / /, $rest;
        delete $like{database} if ($like{database} // '') eq '';
        # It wants to know who has signed a certificate.
        return 'no such call' if $driver eq 'MariaDB' && $like{tls} eq 'on';
        $connection = another();
        return '';
    }
    my $call = $CALLS{$verb} // return 'no such call';
    die "not connected\n" unless $connection;
    return $call->($verb eq 'query' || $verb eq 'script' ? $rest : split / :: /, $rest) // '';
}

sub play {
    my $path = shift;
    print '## ', $path =~ s,.*/,,r, "\n";
    open my $file, '<', $path or die "$path: $!\n";
    my @lines = grep { $_ ne '' && !/^#/ } map { chomp; $_ } <$file>;
    unshift @lines, 'connect database=conf tls=off' unless $lines[0] =~ /^connect/;
    for my $line (@lines) {
        print "> $line\n";
        my ($verb, $rest) = split / /, $line, 2;
        my $outcome = eval { step($verb, $rest // '') };
        if ($@) {
            # What the library says of itself, or words of this file's own; with its place, the former.
            my $words = $DBI::err ? join ' ', 'error', $DBI::err, $DBI::state, $DBI::errstr : "error $@";
            $words =~ s/ at \S+ line \d+\.?\s*$//;
            utf8::encode($words) if utf8::is_utf8($words);
            print '  ', $words =~ s/\s+$//r, "\n";
        } else {
            print $outcome eq 'no such call' ? "  this client has no such call\n" : "  ok\n";
        }
    }
    eval { leave() };
}

while (my $order = <STDIN>) {
    chomp $order;
    ($host, $port, $user, $password, my $path) = split / /, $order, 5;
    play($path);
    print "## end\n";
    STDOUT->flush;
    print STDERR "## end\n";
}
