# Runs scenarios through mysql2 for Ruby and prints all that the client can see.
#
#   ruby client.rb
#
# Each line that it reads is HOST PORT USER PASSWORD SCENARIO; what the client saw ends with a line "## end", here and among the complaints.

require 'digest'
require 'mysql2'

def shown(value)
  case value
  when String
    bytes = value.b
    return "String len=#{bytes.bytesize} sha256=#{Digest::SHA256.hexdigest(bytes)[0, 16]}" if bytes.bytesize > 200

    "String #{value.encoding} #{bytes.inspect}"
  when Time then "Time #{value.strftime('%Y-%m-%d %H:%M:%S.%6N')}"
  when BigDecimal then "BigDecimal #{value.to_s('F')}"
  else "#{value.class} #{value.inspect}"
  end
end

def argument(text)
  kind, rest = text.strip.split(':', 2)
  case kind
  when 'i' then Integer(rest)
  when 'd' then Float(rest)
  when 'n' then nil
  when 'b' then [rest].pack('H*')
  when 'L' then 'x' * Integer(rest)
  when 'l' then rest.split('|').map { |piece| piece.start_with?('*') ? 'x' * Integer(piece[1..]) : piece }.join
  else rest
  end
end

# A connection, and what it has prepared and reads piece by piece.
class Client
  FLAGS = { 'found_rows' => Mysql2::Client::FOUND_ROWS, 'ignore_space' => Mysql2::Client::IGNORE_SPACE,
            'interactive' => Mysql2::Client::INTERACTIVE, 'compress' => Mysql2::Client::COMPRESS }.freeze

  def initialize(host, port, user, password)
    @login = { host: host, port: port, username: user, password: password }
  end

  def leave
    connection = @connection
    @connection = nil
    @prepared = {}
    @open = {}
    connection&.close
  end

  def another(options)
    set = { username: options['user'], password: options['password'], database: options['database'], init_command: options['init'] }
    set.delete_if { |_, value| value.nil? || value.empty? }
    set[:sslverify] = false if options['tls'] == 'on'
    flags = FLAGS.values_at(*(FLAGS.keys & options.keys)).reduce(Mysql2::Client::MULTI_STATEMENTS, :|)
    Mysql2::Client.new(**@login, encoding: options['charset'] || 'utf8mb4', flags: flags, local_infile: options['infile'] != 'off', as: :array,
                                 database_timezone: :utc, reconnect: options.key?('reconnect'), **set)
  end

  def connect(options)
    leave
    @options = options
    @connection = another(options)
  end

  def result(rows, from = @connection)
    if rows
      puts "  columns #{rows.fields.inspect}"
      rows.each { |row| puts "  row #{row.map { |value| shown(value) }.join(' | ')}" }
    end
    puts "  affected=#{from.affected_rows} insert_id=#{from.last_id} warnings=#{from.warning_count} " \
         "info=#{from.query_info_string.inspect}"
  end

  def query(sql)
    result(@connection.query(sql))
    result(@connection.store_result) while @connection.next_result
  end

  def execute(name, values)
    statement = @prepared.fetch(name)
    rows = statement.execute(*values)
    if rows
      puts "  columns #{rows.fields.inspect}"
      rows.each { |row| puts "  row #{row.map { |value| shown(value) }.join(' | ')}" }
    end
    puts "  affected=#{statement.affected_rows} insert_id=#{statement.last_id}"
  end

  # All at once, each on a connection of its own.
  def async(texts)
    all = texts.map { another(@options) }
    all.zip(texts).each { |one, sql| one.query(sql, async: true) }
    all.each do |one|
      IO.for_fd(one.socket, autoclose: false).wait_readable(10)
      result(one.async_result, one)
    rescue Mysql2::Error => e
      puts "  error #{e.error_number} #{e.sql_state} #{e.message}"
    ensure
      one.close
    end
  end

  # Its own connection, by another one; the library makes a new one where it may.
  def be_killed
    before = @connection.thread_id
    other = another(@options)
    other.query("KILL #{before}")
    other.close
    sleep 0.1
    puts "  #{@connection.ping} #{@connection.thread_id == before ? 'the same' : 'another'} connection"
  end

  def about
    puts "  #{@connection.server_info} #{@connection.encoding} own=#{@connection.query('SELECT CONNECTION_ID()').first == [@connection.thread_id]}"
  end

  def step(verb, rest)
    parts = rest.split(' :: ')
    return connect(rest.split.to_h { |part| part.partition('=').values_at(0, 2) }) if verb == 'connect'
    raise 'not connected' unless @connection

    case verb
    when 'query', 'script' then query(rest)
    when 'prepare'
      @prepared.delete(parts[0])
      statement = @prepared[parts[0]] = @connection.prepare(parts[1])
      puts "  parameters=#{statement.param_count} columns=#{statement.field_count} #{statement.fields&.map(&:name).inspect}"
    when 'execute' then execute(parts[0], parts.drop(1).map { |part| argument(part) })
    when 'close' then @prepared.delete(rest) { raise 'not prepared' }.close
    when 'cursor'
      # Rows that wait on the wire.
      values = parts.drop(2).map { |part| argument(part) }
      how = { stream: true, cache_rows: false }
      rows = values.empty? ? @connection.query(parts[1], how) : @connection.prepare(parts[1]).execute(*values, **how)
      @open[parts[0].split.first] = rows.to_enum(:each)
    when 'fetch'
      name, count = rest.split
      count.to_i.times { puts "  row #{@open.fetch(name).next.map { |value| shown(value) }.join(' | ')}" }
    when 'leave' then @open.delete(rest) { raise 'not open' } && @connection.abandon_results!
    when 'ping' then puts "  #{@connection.ping}"
    when 'begin', 'commit', 'rollback' then rest.empty? ? query(verb) : 'no such call'
    when 'autocommit' then query("SET autocommit = #{rest == 'on' ? 1 : 0}")
    when 'use' then @connection.select_db(rest)
    when 'escape' then puts "  #{shown(@connection.escape(rest))}"
    when 'several'
      which = rest == 'on' ? Mysql2::Client::OPTION_MULTI_STATEMENTS_ON : Mysql2::Client::OPTION_MULTI_STATEMENTS_OFF
      puts "  #{@connection.set_server_option(which)}"
    when 'async' then async(parts)
    when 'about' then about
    when 'be_killed' then be_killed
    else 'no such call'
    end
  end

  def play(path)
    puts "## #{File.basename(path)}"
    lines = File.readlines(path, chomp: true, encoding: 'UTF-8').reject { |line| line.empty? || line.start_with?('#') }
    lines.unshift('connect database=conf tls=off') unless lines.first.start_with?('connect')
    lines.each do |line|
      puts "> #{line}"
      verb, rest = line.split(' ', 2)
      puts step(verb, rest || '') == 'no such call' ? '  this client has no such call' : '  ok'
    rescue Mysql2::Error => e
      puts "  error #{e.class} #{e.error_number} #{e.sql_state} #{e.message}"
    rescue StandardError => e # a library's own mistake is part of what it sees
      puts "  error #{e.class} #{e.message}"
    end
    leave
  end
end

$stdout.sync = false
while (order = $stdin.gets)
  host, port, user, password, path = order.chomp.split(' ', 5)
  Client.new(host, Integer(port), user, password).play(path)
  puts '## end'
  $stdout.flush
  warn '## end'
end
