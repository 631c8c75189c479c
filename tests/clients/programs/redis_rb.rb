# latchd from redis-rb.
#
# redis_rb.rb HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../README.md
require 'redis'

HOST, PORT, _protocol, USER, PASSWORD, CA, NAME, *SCENARIOS = ARGV

def connect
  options = { host: HOST, port: PORT.to_i }
  options[:username] = USER unless USER == '-'
  options[:password] = PASSWORD unless PASSWORD == '-'
  options.merge!(ssl: true, ssl_params: { ca_file: CA }) unless CA == '-'
  Redis.new(**options)
end

LATCHD = connect

def ask(*words)
  LATCHD.call(words)
end

def check(good, got = nil)
  raise "unexpected: #{got.inspect}" unless good
end

# The error that this must be answered with.
def refused(wanted, *words)
  answer = ask(*words)
rescue Redis::CommandError => e
  check(e.message.start_with?(wanted), e.message)
else
  check(false, answer)
end

def version
  puts "version #{Redis::VERSION}"
end

def hello
  check(LATCHD.ping == 'PONG')
  token = ask('LOCK', NAME, 'WAIT', 0)
  check(token > 2**31, token)
  check(ask('UNLOCK', NAME, 'TOKEN', token).zero?)
end

def busy
  token = ask('LOCK', NAME)
  check(ask('LOCK', NAME, 'WAIT', 0).nil?)
  check(ask('LOCK', NAME, 'WAIT', 50).nil?)
  check(ask('RENEW', NAME, 'TOKEN', token).positive?)
  check(ask('UNLOCK', NAME, 'TOKEN', token).zero?)
  check(ask('LOCK', NAME, 'FAIR', 'WAIT', 0) > token)
  check(ask('UNLOCK', NAME).zero?)
end

def reenter
  token = ask('LOCK', NAME, 'OWNER', 'ann')
  check(ask('LOCK', NAME, 'OWNER', 'ann') == token)
  check(ask('UNLOCK', NAME, 'OWNER', 'ann') == 1)
  check(ask('UNLOCK', NAME, 'OWNER', 'ann').zero?)
end

def lose
  token = ask('LOCK', NAME)
  check(ask('FORCEUNLOCK', NAME, 'TOKEN', token) == 1)
  refused('NOTHELD ', 'UNLOCK', NAME, 'TOKEN', token)
  refused('NOTHELD ', 'RENEW', NAME, 'TOKEN', token)
  refused('ERR unknown option', 'LOCK', NAME, 'SOON')
end

def share
  one = ask('LOCK', NAME, 'READ')
  two = ask('LOCK', NAME, 'READ')
  check(ask('LOCK', NAME, 'WRITE', 'WAIT', 0).nil?)
  check(ask('UNLOCK', NAME, 'TOKEN', one).zero?)
  check(ask('UNLOCK', NAME, 'TOKEN', two).zero?)
  token = ask('LOCK', NAME, 'WRITE', 'WAIT', 0)
  check(ask('UNLOCK', NAME, 'TOKEN', token).zero?)
end

def pipeline(how = :pipelined)
  one, two, none = LATCHD.send(how) do |batch|
    %w[1 2 1].each { |which| batch.call('LOCK', NAME + which, 'WAIT', 0) }
  end
  check(one.positive? && two.positive? && none.nil?)
  left = LATCHD.send(how) do |batch|
    batch.call('UNLOCK', "#{NAME}1", 'TOKEN', one)
    batch.call('UNLOCK', "#{NAME}2", 'TOKEN', two)
  end
  check(left == [0, 0], left)
end

def multi
  pipeline(:multi)
end

def events
  told = Queue.new
  listener = Thread.new do
    connect.subscribe("lost:#{NAME}") do |on|
      on.subscribe { told << 'ready' }
      on.message do |channel, text|
        told << "#{channel} #{text}"
      end
    end
  end
  patterns = Thread.new do
    connect.psubscribe("g*:#{NAME}") do |on|
      on.psubscribe { told << 'ready' }
      on.pmessage do |_, channel, text|
        told << "#{channel} #{text}"
      end
    end
  end
  2.times { check(told.pop == 'ready') }
  token = ask('LOCK', NAME, 'OWNER', 'joe')
  check(told.pop == "granted:#{NAME} joe #{token}")
  check(ask('FORCEUNLOCK', NAME, 'OWNER', 'joe') == 1)
  check(told.pop == "lost:#{NAME} joe #{token}")
  [listener, patterns].each(&:kill)
end

# Asks until it is answered; the ID makes that right after a time-out, too.
def insist(*words)
  yield if block_given?
  ask(*words)
rescue Redis::BaseConnectionError
  sleep 0.05
  retry
end

def wait(request, patience)
  asked = 0
  token = nil
  while token.nil?
    token = insist('LOCK', NAME, 'WAIT', patience, 'ID', request) { asked += 1 }
  end
  puts "token #{token} #{asked}"
  $stdout.flush
  puts "left #{insist('UNLOCK', NAME, 'ID', request)}"
end

if SCENARIOS[0] == 'wait'
  wait(*SCENARIOS[1..])
else
  SCENARIOS.each do |scenario|
    send(scenario)
    puts "ok #{scenario}"
  end
end
