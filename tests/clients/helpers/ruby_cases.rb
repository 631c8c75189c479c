# ruby_cases.rb PORT TLS_PORT CA UNIX_SOCKET: what only the helper for Ruby has to do. Prints TAP.
require 'timeout'
require_relative '../../../clients/ruby/lib/latchd'

PORT, TLS_PORT, CA, UNIX_SOCKET = ARGV
URL = "redis://127.0.0.1:#{PORT}".freeze
CLIENT = Latchd.new(URL)
OTHER = Latchd.new(URL)
DEADLINE_S = 60

def check(good, what)
  raise what unless good
end

def raises(kind)
  yield
rescue kind => e
  e
else
  raise "it raised no #{kind}"
end

def wait_for(what)
  deadline = Latchd.now + DEADLINE_S
  until yield
    check(Latchd.now < deadline, what)
    sleep 0.01
  end
end

def waiters
  OTHER.query(%w[WAITERS job]).size
end

def free_by_force(name)
  check(OTHER.query(['FORCEUNLOCK', name, 'ANY']) == 1, 'it was not held')
end

# Runs the block in a fork, and gives whether it ended well.
def in_child
  pid = fork do
    yield
    exit!(0)
  rescue Exception => e # rubocop:disable Lint/RescueException
    warn e.full_message
    exit!(1)
  end
  Process.wait2(pid)[1].success?
end

def an_interrupted_wait_leaves_the_queue
  held = OTHER.lock('job')
  [->(thread) { thread.kill }, ->(thread) { thread.raise(Interrupt) }].each do |interrupt|
    thread = Thread.new { CLIENT.lock('job') { raise 'it was granted' } }
    thread.report_on_exception = false
    wait_for('it waits') { waiters == 1 }
    interrupt.call(thread)
    wait_for('nobody waits') { waiters.zero? }
  end
  raises(Timeout::Error) { Timeout.timeout(0.1) { CLIENT.lock('job') { raise 'it was granted' } } }
  wait_for('nobody waits') { waiters.zero? }
  held.release
  CLIENT.lock('job', wait: DEADLINE_S) { |lock| check(lock.held?, 'it is not held') }
end

def an_interrupted_block_releases
  raises(Timeout::Error) { Timeout.timeout(0.1) { CLIENT.lock('job') { sleep } } }
  CLIENT.lock('job', wait: DEADLINE_S) { nil }
  check(CLIENT.lock('job') { break 'left' } == 'left', 'the block is not left')
  CLIENT.lock('job', wait: 0) { nil }
end

def a_child_has_none_of_its_parents_holds
  lock = CLIENT.lock('job')
  is_well = in_child do
    check(lock.lost? && !lock.held?, 'the child holds it')
    raises(Latchd::LockLost) { lock.release }
    raises(Latchd::LockTimeout) { CLIENT.lock('job', wait: 0) }
    CLIENT.lock('of the child', wait: 0) { |own| check(own.held?, 'it is not held') }
  end
  check(is_well, 'the child thinks otherwise')
  check(lock.held? && OTHER.try_lock('job').nil?, 'the child released it')
  lock.release
end

def a_child_that_leaves_its_parents_block_releases_nothing
  pid = nil
  CLIENT.lock('job') do
    pid = fork
    next if pid.nil?

    check(Process.wait2(pid)[1].success?, 'the child is not told')
    check(OTHER.try_lock('job').nil?, 'the child released it')
  end
rescue Latchd::LockLost
  exit!(0) if pid.nil?
  raise
end

def the_end_of_a_block_tells_of_a_loss
  lose = lambda do |lock|
    free_by_force('job')
    check(lock.wait_lost(DEADLINE_S), 'it is not told')
  end
  raises(Latchd::LockLost) { CLIENT.lock('job', &lose) }
  error = raises(RuntimeError) do
    CLIENT.lock('job') do |lock|
      lose.call(lock)
      raise 'of the work'
    end
  end
  check(error.message == 'of the work', error.message)
  begin
    raise 'before'
  rescue RuntimeError
    raises(Latchd::LockLost) { CLIENT.lock('job', &lose) }
  end
end

def a_lock_is_released_once
  lock = CLIENT.try_lock('job')
  check(CLIENT.try_lock('job').nil? && CLIENT.locked?('free', 'job'), 'it is free')
  lock.release
  raises(Latchd::LockLost) { lock.release }
  check(!lock.held? && !lock.lost? && !CLIENT.locked?('job'), 'it is still held')
end

def names_are_bytes
  ["\xff", 'é', 'é'.b, 'é'.encode('ISO-8859-1'), "a:\xff:b".b].each do |name|
    lock = CLIENT.lock(name, 'job', lease: 600)
    check(lock.tokens[name] == lock.token, 'its token is under another name')
    sleep 0.3 # until it is listened for
    link = CLIENT.instance_variable_get(:@link)
    free_by_force(name)
    check(lock.wait_lost(DEADLINE_S), 'it is not told')
    check(CLIENT.instance_variable_get(:@link).equal?(link), 'it connected again')
    raises(Latchd::LockLost) { lock.release }
  end
end

# With what is 10 s otherwise.
def with_asks_of(seconds)
  before = set_longest_ask(seconds)
  yield
ensure
  set_longest_ask(before)
end

def set_longest_ask(seconds)
  Latchd.send(:remove_const, :LONGEST_ASK).tap { Latchd.const_set(:LONGEST_ASK, seconds) }
end

def an_owner_waits_for_longer_than_patience
  held = OTHER.lock('job')
  client = Latchd.new(URL, timeout: 0.5, patience: 0.5)
  began = Latchd.now
  with_asks_of(0.2) { raises(Latchd::LockTimeout) { client.lock('job', owner: 'o', wait: 3) { nil } } }
  check(Latchd.now - began >= 3, 'it did not wait')
  held.release
end

def data_is_not_taken_for_an_option
  hold = CLIENT.send(:hold_for, ['job'], 0, {}, data: 'OWNER', other: { 'data2' => 'KEEP' })
  check(!hold.owned? && !hold.keeps_place?, 'it is')
  hold = CLIENT.send(:hold_for, ['job'], 0, {}, owner: 'KEEP')
  check(hold.owned? && !hold.keeps_place?, 'it is not told apart')
  check(hold.asks(0)[0].include?('KEEP'), 'no words')
end

def a_failed_wait_does_not_keep_the_process
  pid = fork do
    raises(Latchd::Unreachable) { Latchd.new('redis://127.0.0.1:1', patience: 0).lock('job', lease: 600) }
    exit(0)
  end
  status = nil
  wait_for('it ends') { (status = Process.wait2(pid, Process::WNOHANG)) }
  check(status[1].success?, 'it failed')
end

def too_many_threads_do_not_end_the_keeper
  lock = CLIENT.lock('job', lease: 600, on_lost: -> {})
  CLIENT.define_singleton_method(:in_thread) { raise ThreadError, "can't create Thread" }
  free_by_force('job')
  check(lock.wait_lost(DEADLINE_S), 'it is not told')
  sleep 0.1
  check(CLIENT.instance_variable_get(:@keeper).alive?, 'the keeper ended')
ensure
  CLIENT.singleton_class.send(:remove_method, :in_thread)
end

def wrong_options_are_refused
  raises(ArgumentError) { CLIENT.lock('job', urgency: 9) }
  raises(ArgumentError) { CLIENT.lock }
  raises(ArgumentError) { CLIENT.try_lock('job') { nil } }
  raises(ArgumentError) { Latchd.new }
  raises(ArgumentError) { Latchd.new('localhost') }
end

def it_comes_over_tls_and_a_unix_socket
  near = Latchd.new("unix://#{UNIX_SOCKET}")
  far = Latchd.new("rediss://localhost:#{TLS_PORT}", ssl_params: { ca_file: CA })
  near.lock('job') { check(far.try_lock('job').nil?, 'it was taken twice') }
  lock = far.lock('job', wait: 0)
  free_by_force('job')
  check(lock.wait_lost(DEADLINE_S), 'it is not told')
  stranger = Latchd.new("rediss://localhost:#{TLS_PORT}", patience: 0)
  check(raises(Latchd::Unreachable) { stranger.try_lock('job') }.message.include?('certificate'), 'it trusts anybody')
end

def a_closed_client_ends_its_threads
  before = Thread.list.size
  client = Latchd.new(URL)
  client.lock('job') { nil }
  client.close
  wait_for('its threads end') { Thread.list.size <= before }
end

CASES = %i[an_interrupted_wait_leaves_the_queue an_interrupted_block_releases a_child_has_none_of_its_parents_holds
           a_child_that_leaves_its_parents_block_releases_nothing the_end_of_a_block_tells_of_a_loss
           a_lock_is_released_once names_are_bytes an_owner_waits_for_longer_than_patience
           data_is_not_taken_for_an_option a_failed_wait_does_not_keep_the_process too_many_threads_do_not_end_the_keeper
           wrong_options_are_refused it_comes_over_tls_and_a_unix_socket
           a_closed_client_ends_its_threads].freeze

puts "1..#{CASES.size}"
$stdout.flush # or a fork says it again
failed = CASES.each.with_index(1).count do |name, number|
  send(name)
  puts "ok #{number} - #{name.to_s.tr('_', ' ')}"
  false
rescue StandardError => e
  puts "not ok #{number} - #{name.to_s.tr('_', ' ')}", e.full_message(highlight: false).gsub(/^/, '# ')
  true
ensure
  $stdout.flush
end
exit(failed.zero?)
