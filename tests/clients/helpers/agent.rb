# agent.rb TIMEOUT_S PATIENCE_S URL...: takes locks as it is told, with the helper for Ruby.
# README.md says how it is told.
require 'logger'
require_relative '../../../clients/ruby/lib/latchd'

# What ends a wait: another thread raises it.
class Quit < StandardError; end

TIMEOUT, PATIENCE, *URLS = ARGV
CLIENT = Latchd.new(*URLS, timeout: TIMEOUT.to_f, patience: PATIENCE.to_f, logger: Logger.new($stderr))
LOCKS = {}
THREADS = {}
MILLIS = %i[lease grace keep heartbeat at_least].freeze
NUMBERS = %i[priority queue permits].freeze
$stdout.sync = true

def say(*words)
  $stdout.write("#{words.join(' ')}\n")
end

def check(good)
  raise 'unexpected' unless good
end

def option(text)
  word, value = text.split('=')
  word = word.to_sym
  return [word, true] if value.nil?
  return [word, value.to_i / 1000.0] if MILLIS.include?(word)

  [word, NUMBERS.include?(word) ? value.to_i : value]
end

def seconds(text)
  text == '-' ? nil : text.to_i / 1000.0
end

# Gives what to say, besides the key.
module Orders
  module_function

  def lock(key, names, wait, *options)
    options = options.to_h { |text| option(text) }
    options[:of] = 3 if options.key?(:permits)
    lock = CLIENT.lock(*names.split(','), wait: seconds(wait), on_lost: -> { say(key, 'lost') },
                                          on_uncertain: -> { say(key, 'uncertain') }, **options)
    LOCKS[key] = lock
    ['token', *lock.tokens.values]
  end

  def unlock(key)
    LOCKS.fetch(key).release
    check(!LOCKS.fetch(key).held?)
    ['unlocked']
  end

  def locked(_key, names)
    ['answer', CLIENT.locked?(*names.split(',')) ? 1 : 0]
  end

  def follow(key, name)
    CLIENT.follow(name) { |leader| say(key, 'leader', leader.token, leader.data.empty? ? '-' : leader.data) }
  end

  def latch(_key, what, name, *words)
    latch = CLIENT.latch(name)
    answer = case what
             when 'set' then latch.set(words[0].to_i, **(words[1] ? { id: words[1] } : {}))
             when 'count' then latch.count(**(words[0] ? { id: words[0] } : {}))
             when 'await' then latch.wait(seconds(words[0]))
             else latch.delete
             end
    ['answer', { true => 1, false => 0 }.fetch(answer, answer)]
  end

  def child(_key)
    ['pid', fork { sleep }]
  end

  def crowd(_key, name, count, turns)
    inside = []
    overlaps = Queue.new
    Array.new(count.to_i) do
      Thread.new do
        turns.to_i.times do
          CLIENT.lock(name) do |lock|
            inside << lock.token
            Thread.pass
            overlaps << lock if inside.size > 1
            inside.delete(lock.token)
          end
        end
      end
    end.each(&:join)
    ['overlaps', overlaps.size]
  end
end

def answer(what, key, words)
  Thread.handle_interrupt(Quit => :immediate) { Orders.send(what, key, *words) }
rescue Latchd::LockTimeout
  ['null']
rescue Latchd::Error => e
  warn("#{key} #{e.message}")
  ['error', e.code]
rescue Quit
  ['gave-up']
end

# What was answered is no more given up.
def obey(what, key, words)
  Thread.handle_interrupt(Quit => :never) { say(key, *answer(what, key, words)) }
rescue Quit
  nil
end

Thread.report_on_exception = true
$stdin.each_line do |line|
  what, key, *words = line.split
  if %w[give-up leave].include?(what)
    THREADS[key].raise(Quit) if THREADS[key].alive?
  else
    THREADS[key] = Thread.new { obey(what, key, words) } unless what == 'unlock'
    Thread.new { obey(what, key, words) } if what == 'unlock'
  end
end
