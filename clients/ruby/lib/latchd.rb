# frozen_string_literal: true

require 'io/wait'
require 'openssl'
require 'securerandom'
require 'set'
require 'socket'
require 'uri'

# Locks of latchd, with nothing but Ruby's standard library.
#
#   latchd = Latchd.new('redis://localhost:5625') # one for the process
#   latchd.lock('job', wait: 10) { |lock| work(lock.token) } # until lock.lost?
#
# Each wait has a connection of its own. All holds of a Client are renewed over one, which also hears at once
# what latchd learns of those that last. Every request has an ID and is repeated, through the next address if need
# be, until it is answered. How long a hold may be relied on is counted from before its last renewal was sent, on a
# clock that runs during suspend (on Linux).
#
# A hold is renewed until it is released, lost, or its process ends, and then lasts for the rest of its lease, or for
# +grace+. The garbage collector releases none. After a fork the child has none of its parent's holds.
module Latchd
  VERSION = '0.1.0'

  LONGEST_ASK = 10.0 # seconds; a wait is made of LOCKs that are this long
  MOST_IDLE = 8 # connections that are kept for the next waits
  PAUSES = [0.05, 1.0].freeze # between attempts, growing
  LEAST_LEASE_MS = 100 # what latchd takes
  LEAST_PATIENCE = 1.0 # for a renewal, while there is time
  HEARD_AFTER = 0.05 # a shorter hold is not listened for
  HEARTBEAT_PART = 2.0 / 3 # after which a hold without a renewal is lost
  NEVER = Float::INFINITY
  AT_ONCE = -Float::INFINITY
  CLOCK = defined?(Process::CLOCK_BOOTTIME) ? Process::CLOCK_BOOTTIME : Process::CLOCK_MONOTONIC
  private_constant :LONGEST_ASK, :MOST_IDLE, :PAUSES, :LEAST_LEASE_MS, :LEAST_PATIENCE, :HEARD_AFTER,
                   :HEARTBEAT_PART, :NEVER, :AT_ONCE, :CLOCK

  # What latchd answered, or why it did not.
  class Error < StandardError
    # The first word of latchd's answer, as latchd-protocol(7) has it, or one like it.
    attr_reader :code

    def initialize(text = nil, code = self.class::CODE)
      super(text)
      @code = code
    end

    CODE = 'ERR'
  end

  # Somebody else has the lock, and the wait is over.
  class LockTimeout < Error
    CODE = 'TIMEOUT'
  end

  # The lock was lost before it was released; somebody else may have had it since.
  class LockLost < Error
    CODE = 'NOTHELD'
  end

  # No address of latchd answers.
  class Unreachable < Error
    CODE = 'UNREACHABLE'
  end

  # latchd's Redis cannot be reached, or refuses to grant.
  class Backend < Error
    CODE = 'BACKEND'
  end

  # Too few replicas acknowledge.
  class NoReplicas < Backend
    CODE = 'NOREPLICAS'
  end

  # Owners would wait for each other.
  class Deadlock < Error
    CODE = 'DEADLOCK'
  end

  # A limit of latchd's configuration is reached.
  class Limit < Error
    CODE = 'LIMIT'
  end

  # The user may not do that, or did not log in.
  class NoPermission < Error
    CODE = 'NOPERM'
  end

  # The name belongs to other data, or to a lock of the other class.
  class WrongType < Error
    CODE = 'WRONGTYPE'
  end

  # There is no such latch: it was never set, or was deleted, evicted or lost.
  class LatchGone < Error
    CODE = 'GONE'
  end

  # The address is a plain Redis.
  class NotLatchd < Error
    CODE = 'NOTLATCHD'
  end

  class GoAway < Error # :nodoc:
    CODE = 'GOAWAY'
  end
  private_constant :GoAway

  class Error
    KINDS = [LockLost, Backend, NoReplicas, Deadlock, Limit, NoPermission, WrongType, GoAway]
            .to_h { |kind| [kind::CODE, kind] }
            .merge('NOAUTH' => NoPermission, 'WRONGPASS' => NoPermission, 'DENIED' => NoPermission).freeze
    private_constant :KINDS

    def self.answered(said) # :nodoc:
      case said
      when /\AERR (gone|no such latch)/ then LatchGone.new(said)
      when /\AERR unknown command/ then NotLatchd.new("this is a Redis, not a latchd: #{said}")
      else
        code = said[/\A\S+/].to_s
        KINDS.fetch(code, Error).new(said, code)
      end
    end
  end

  # Who holds a name alone: the fencing token, the owner as latchd names it, and the data of the lock. Nobody: 0 and
  # empty.
  Leader = Struct.new(:token, :owner, :data) do
    # Whether there is nobody.
    def nobody?
      owner.empty?
    end
  end

  def self.new(...)
    Client.new(...)
  end

  def self.now # :nodoc:
    Process.clock_gettime(CLOCK)
  end

  def self.millis(seconds) # :nodoc:
    (seconds * 1000).ceil
  end

  # A connection that is used by one thread at a time; the one that renews, by one that reads and one that writes.
  class Connection # :nodoc:
    Push = Struct.new(:words) # what latchd says unasked
    TROUBLE = [SystemCallError, SocketError, IOError, OpenSSL::SSL::SSLError].freeze

    attr_reader :at
    attr_accessor :was_idle

    def initialize(url, at, timeout, ssl_params)
      @url, @at, @timeout, @ssl_params, @buffer = URI(url), at, timeout, ssl_params, ''.b
    end

    # with_pushes: by RESP3.
    def open(with_pushes)
      @io = @socket = connect
      encrypt if @url.scheme == 'rediss'
      refusal, = ask([greeting(with_pushes)], @timeout)
      raise refusal if refusal.is_a?(Error)
    rescue *TROUBLE => e
      raise Unreachable, e.message
    end

    # The socket is closed, and not shut down: in a forked child it is the parent's still.
    def close
      @socket&.close
    rescue IOError
      nil # it is closed already
    end

    # Wakes the thread that reads.
    def shut
      @socket.shutdown
    rescue *TROUBLE
      nil # it has ended by itself
    end

    def send(commands)
      bytes = commands.map do |words|
        "*#{words.size}\r\n" + words.map { |word| "$#{word.to_s.bytesize}\r\n#{word.to_s.b}\r\n" }.join.b
      end.join
      until bytes.empty?
        sent = @io.write_nonblock(bytes, exception: false)
        sent.is_a?(Integer) ? bytes = bytes.byteslice(sent..) : await(sent, @timeout)
      end
    rescue *TROUBLE => e
      raise Unreachable, e.message
    end

    # The answers to several commands, which are sent in one go; errors are among them.
    def ask(commands, within)
      send(commands)
      deadline = Latchd.now + within
      commands.map { receive(deadline) }
    end

    # The next answer, or what is said unasked.
    def receive(deadline = nil)
      @deadline = deadline
      read
    rescue *TROUBLE => e
      raise Unreachable, e.message
    end

    # Whether there is something that its thread has found no time to read, with many threads that are busy.
    def readable?
      @socket.wait_readable(0)
    rescue IOError
      false
    end

    # Whether one that lay idle is still good: nothing came, and least of all its end.
    def quiet?
      @buffer.empty? && @io.read_nonblock(1, exception: false) == :wait_readable
    rescue *TROUBLE
      false
    end

    private

    def connect
      return UNIXSocket.new(@url.path) if @url.scheme == 'unix'

      Socket.tcp(host, @url.port || 5625, connect_timeout: @timeout).tap do |socket|
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_KEEPALIVE, 1)
      end
    end

    def host
      @url.hostname.to_s.empty? ? 'localhost' : @url.hostname
    end

    def encrypt
      context = OpenSSL::SSL::SSLContext.new
      context.set_params(@ssl_params || {}) # which verifies
      @io = OpenSSL::SSL::SSLSocket.new(@socket, context)
      @io.hostname = host
      deadline = Latchd.now + @timeout
      while (wanted = @io.connect_nonblock(exception: false)).is_a?(Symbol)
        await(wanted, deadline - Latchd.now)
      end
      @io.post_connection_check(host) if context.verify_mode != OpenSSL::SSL::VERIFY_NONE
    end

    # Its answer shows that latchd itself is there.
    def greeting(with_pushes)
      login = []
      if @url.userinfo
        user, password = @url.userinfo.include?(':') ? @url.userinfo.split(':', 2) : ['', @url.userinfo]
        parts = [user.empty? ? 'default' : user, password]
        login = ['AUTH', *parts.map { |part| part.gsub(/%\h\h/) { |code| code[1..].hex.chr } }]
      end
      return ['HELLO', 3, *login] if with_pushes

      login.empty? ? ['PING'] : login
    end

    def await(what, within)
      ready = what == :wait_writable ? @socket.wait_writable(within) : @socket.wait_readable(within)
      raise Unreachable, 'no answer in time' unless ready
    end

    def fill
      chunk = @io.read_nonblock(65_536, exception: false)
      case chunk
      when nil then raise Unreachable, 'latchd closed the connection'
      when Symbol then await(chunk, @deadline && [@deadline - Latchd.now, 0].max)
      else @buffer << chunk
      end
    end

    def take(length)
      fill while @buffer.bytesize < length
      taken = @buffer.byteslice(0, length)
      @buffer = @buffer.byteslice(length..)
      taken
    end

    def line
      fill until (index = @buffer.index("\r\n"))
      take(index + 2).chomp
    end

    def read
      kind, rest = (said = line)[0], said[1..]
      case kind
      when '+', ',', '#', '(' then rest
      when '-' then Error.answered(rest.force_encoding('UTF-8').scrub)
      when ':' then rest.to_i
      when '_' then nil
      when '$' then rest.to_i.negative? ? nil : take(rest.to_i + 2)[0..-3].force_encoding('UTF-8')
      when '*' then rest.to_i.negative? ? nil : Array.new(rest.to_i) { read }
      when '%' then Array.new(2 * rest.to_i) { read }
      when '>' then Push.new(Array.new(rest.to_i) { read })
      else raise Unreachable, 'it does not speak the Redis protocol'
      end
    end
  end
  private_constant :Connection

  # One request for one lock, or several, and what it was granted. What changes is guarded by the client's mutex.
  class Hold # :nodoc:
    attr_reader :given, :names, :wait, :lease, :calls, :since, :changed
    attr_accessor :request, :tokens, :phase, :uncertain, :noticed, :until, :due, :answers, :least, :trouble

    # options: each begins with its name.
    def initialize(names, wait, options, kind, lease, heartbeat, calls)
      @given, @wait, @options, @kind, @lease, @heartbeat, @calls = names, wait, options, kind, lease, heartbeat, calls
      @names = names.map { |name| name.to_s.b.freeze } # as latchd compares them
      @phase = :waiting # then :granted, :held, and in the end :lost or :released; in a child :forked
      @request = SecureRandom.uuid
      @changed = ConditionVariable.new
    end

    def name
      names.join(' and ').force_encoding('UTF-8').scrub
    end

    def keeps_place?
      !@options.assoc('KEEP').nil?
    end

    def owned?
      !@options.assoc('OWNER').nil?
    end

    # The LOCK, or MLOCK, of a wait that has so much left, and how much of it that asks for.
    def asks(left)
      ask = [left, LONGEST_ASK].min
      # latchd looks for a deadlock where it knows how long an owner would wait in all.
      wait = owned? ? left : ask
      words = [*(names.one? ? ['LOCK'] : ['MLOCK', names.size]), *names, *@kind, *@options.flatten(1)]
      words.push('WAIT', Latchd.millis(wait)) if wait < NEVER
      words.push('KEEP', 0) if wait.zero? && !keeps_place?
      [words.push('ID', request), ask]
    end

    # One for each name.
    def commands(word, *more)
      names.map { |name| [word, name, *@kind, 'ID', request, *more] }
    end

    # Ends the request: its wait, and its hold, if it was granted in the same moment.
    def undo
      [['CANCEL', names.first, 'ID', request], *commands('UNLOCK')]
    end

    def begin(tokens)
      @tokens, @phase, @since, @uncertain, @noticed = tokens, :granted, Latchd.now, false, false
      @until, @due, @answers, @trouble = NEVER, AT_ONCE, 0, nil
    end

    # The commands of a renewal, which is under way from now on. A hold with a lease is only confirmed, for what is
    # left of it.
    def renewal(now)
      @end = now + lease if lease && phase == :granted
      @noticed, @due, @sent, @answers, @least, @trouble = false, NEVER, now, names.size, NEVER, nil
      commands('RENEW', *(lease ? ['LEASE', [LEAST_LEASE_MS, ((@end - now) * 1000).to_i].max] : []))
    end

    def renewed
      @until = @sent + (least / 1000.0)
      if lease
        @until = [@until, @end].min
      elsif @heartbeat
        @until = [@until, @sent + (@heartbeat * HEARTBEAT_PART)].min # over before latchd gives it on
      end
      @due = noticed ? AT_ONCE : @sent + ((@until - @sent) / 3)
      @phase, @uncertain = :held, false
    end

    # Something was said of it: the renewal tells whether it is so.
    def notice
      @noticed = true
      @due = AT_ONCE if answers.zero?
    end

    def over?(now = Latchd.now)
      phase == :held && @until <= now
    end
  end
  private_constant :Hold

  # The connection over which holds are renewed, and notices come.
  class Link # :nodoc:
    attr_reader :connection, :expected
    attr_accessor :heard, :deaf

    def initialize(connection)
      @connection = connection
      @expected = [] # what answers are of, and until when each is waited for
      @heard = Set.new # names
      @deaf = false # the user may not listen
    end

    def deadline
      expected.empty? ? NEVER : expected.first.last
    end
  end
  private_constant :Link

  # latchd; one serves all threads of a process.
  #
  # One thread, the keeper, renews what is due and says what is lost. Another one connects the link, over which holds
  # are renewed, and reads what comes over it: answers in the order of the questions, and notices that nobody asked
  # for. All that changes is guarded by one mutex.
  class Client
    # urls: addresses of latchds that share a Redis; the first that answers is used.
    #
    # timeout: seconds without an answer after which a connection is given up. patience: seconds without latchd, or
    # with its Redis out of reach, after which a wait fails. logger: is warned when a hold becomes uncertain or is
    # lost. ssl_params: of OpenSSL::SSL::SSLContext, for rediss://.
    def initialize(*urls, timeout: 5.0, patience: 30.0, logger: nil, ssl_params: nil)
      raise ArgumentError, "latchd's address is missing" if urls.empty?

      wrong = urls.find { |url| !url.match?(%r{\A(rediss?|unix)://}) }
      raise ArgumentError, 'an address begins with redis://, rediss:// or unix://' if wrong

      @urls, @timeout, @patience, @logger, @ssl_params = urls, timeout, patience, logger, ssl_params
      @at = 0 # of the addresses: the last one that answered
      @holds = {} # by request
      @sockets = Set.new # connections
      start
      AtFork.clients << self
    end

    # Takes a name, or several, all or none, and yields the lock, which is released in the end. Without a block it
    # returns the lock, to be released.
    #
    # Raises LockTimeout if somebody else has it after +wait+ seconds (nil: no end), and, at the end of the block,
    # LockLost if it was lost meanwhile. An exception that another thread raises, such as by Timeout.timeout, ends the
    # wait.
    #
    # on_lost, on_uncertain: called without arguments, in a thread of their own. The other options are those of LOCK, as
    # latchd-protocol(7) has them; lease, grace, keep, heartbeat and at_least are seconds. With at_least nobody else gets
    # the lock for so long, though its holder is done, or gone: it is not waited for. other: options that a later latchd
    # has, by their names.
    def lock(*names, wait: nil, on_lost: nil, on_uncertain: nil, **options)
      lock = Lock.new(self, hold_for(names, wait, { lost: on_lost, uncertain: on_uncertain }, **options))
      return lock.tap(&:acquire) unless block_given?

      begin
        lock.acquire
        yield lock
      rescue Exception => e # rubocop:disable Lint/RescueException
        raise
      ensure
        lock.end_of_block(e)
      end
    end

    # The lock, or nil if somebody else has it. It takes no block.
    def try_lock(*names, wait: 0, **options)
      raise ArgumentError, 'a block is for lock: try_lock returns the lock' if block_given?

      lock(*names, wait: wait, **options)
    rescue LockTimeout
      nil
    end

    # Whether anybody holds the name now, or one of several. Raises Backend if that cannot be known.
    def locked?(*names)
      names.map { |name| held?(name) }.any?
    end

    # A latch, which others count down.
    def latch(name)
      Latch.new(self, name)
    end

    # Yields who leads: who holds the name alone, now, and each time that it changes, without an end. A leader that is
    # followed by another one at once may be skipped.
    def follow(name)
      return enum_for(:follow, name) unless block_given?

      last = nil
      while true # loop() would end with a StopIteration of the block
        words, takes = ['LEADER', name], 0
        words.push('AFTER', last.token, 'WAIT', Latchd.millis(takes = LONGEST_ASK)) if last
        leader = Leader.new(*query(words, takes: takes, patience: NEVER))
        yield last = leader unless leader == last
      end
    end

    # Closes the connections, once nothing is held any more.
    def close
      @mutex.synchronize do
        @is_closed = true
        @idle.each { |connection| drop(connection) }
        @idle.clear
        wake(AT_ONCE)
      end
      AtFork.clients.delete(self)
    end

    # The hold lasts until it is released; Lock calls this. Other threads interrupt it where it waits, and nowhere else.
    def acquire(hold) # :nodoc:
      Thread.handle_interrupt(Object => :on_blocking) { take(hold) }
    end

    def release(hold) # :nodoc:
      Thread.handle_interrupt(Object => :on_blocking) do
        was_lost = uninterrupted { @mutex.synchronize { let_go(hold) } }
        error = unlock(hold)
        raise LockLost, "#{hold.name} was lost before it was released" if was_lost || error.is_a?(LockLost)
      end
    end

    def lost?(hold) # :nodoc:
      @mutex.synchronize do
        lose(hold) if hold.over?
        %i[lost forked].include?(hold.phase)
      end
    end

    def wait_lost(hold, timeout) # :nodoc:
      deadline = timeout ? Latchd.now + timeout : NEVER
      @mutex.synchronize do
        # The keeper says when the lease is over.
        until hold.phase != :held || Latchd.now >= deadline
          hold.changed.wait(@mutex, timeout(deadline))
        end
      end
      lost?(hold)
    end

    # Asks until there is an answer, which may take so long, or there has been none for as long as patience.
    def query(words, takes: 0, patience: @patience) # :nodoc:
      began, pause, tries = Latchd.now, PAUSES[0], 0
      loop do
        begin
          answer, = ask([words], takes + @timeout)
          raise answer if answer.is_a?(Error)

          return answer
        rescue Unreachable, Backend, GoAway => e
          tries += 1
          raise if Latchd.now - began >= patience && (e.is_a?(Backend) || tries > @urls.size)
        end
        sleep(pause)
        pause = [2 * pause, PAUSES[1]].min
      end
    end

    # In a forked child: the connections are the parent's, and the holds as well. A connection is open as long as
    # anybody has its socket: a child that kept it would keep the holds of a parent that died.
    def after_fork # :nodoc:
      @sockets.each(&:close)
      @holds.each_value { |hold| hold.phase = :forked }
      @sockets, @holds = Set.new, {} # another thread of the parent's may have been at work on the old ones
      start
    end

    private

    def start
      @mutex, @work, @wake_at, @keeper = Mutex.new, ConditionVariable.new, NEVER, nil
      @idle, @link, @is_connecting, @is_closed = [], nil, false, false
      @pause, @retry_at, @hear_at = PAUSES[0], AT_ONCE, NEVER
    end

    SECONDS = %i[lease grace keep heartbeat at_least].freeze
    FLAGS = %i[fair local].freeze
    VALUES = %i[permits of owner data priority queue].freeze
    private_constant :SECONDS, :FLAGS, :VALUES

    def hold_for(names, wait, calls, read: false, write: false, other: {}, **options)
      raise ArgumentError, 'a lock has a name' if names.empty?

      options.compact!
      unknown = options.keys - SECONDS - FLAGS - VALUES
      raise ArgumentError, "unknown option of a lock: #{unknown.join(', ')}" unless unknown.empty?

      asked = options.filter_map do |option, value|
        word = option.to_s.delete('_').upcase
        next value ? [word] : nil if FLAGS.include?(option)

        [word, SECONDS.include?(option) ? Latchd.millis(value) : value]
      end
      asked += other.map { |option, value| value == true ? [option.to_s.upcase] : [option.to_s.upcase, value] }
      wait = 0 if wait.nil? && options[:at_least] # a job of its time does not wait for the next one
      kind = [('READ' if read), ('WRITE' if write)].compact
      Hold.new(names, wait, asked, kind, options[:lease], options[:heartbeat], calls)
    end

    # For what is short and has to be whole.
    def uninterrupted(&block)
      Thread.handle_interrupt(Object => :never, &block)
    end

    # Interrupted where it may be, although who starts it is not: a thread inherits that.
    def in_thread(&block)
      Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }
    end

    # Connections

    # Through the first address that answers, beginning with the last one that did.
    def connect(with_pushes: false)
      trouble = nil
      @urls.size.times do
        at = @at
        connection = Connection.new(@urls[at], at, @timeout, @ssl_params)
        @mutex.synchronize { @sockets << connection }
        connection.open(with_pushes)
        is_open = true
        return connection
      rescue Unreachable, GoAway => e
        trouble = e
        @mutex.synchronize { leave(at) }
      ensure
        @mutex.synchronize { drop(connection) } if connection && !is_open
      end
      raise trouble
    end

    # The next attempt begins with another address, if there is one.
    def leave(at)
      return if @at != at

      @at = (at + 1) % @urls.size
      @idle.each { |connection| drop(connection) }
      @idle.clear
    end

    def drop(connection)
      @sockets.delete(connection)
      connection.close
    end

    def take_connection
      while (connection = @mutex.synchronize { @idle.pop })
        connection.was_idle = true
        return connection if connection.quiet?

        @mutex.synchronize { drop(connection) }
      end
      connect
    end

    def give_back(connection)
      @mutex.synchronize do
        if @idle.size < MOST_IDLE && connection.at == @at && !@is_closed
          @idle << connection
        else
          drop(connection)
        end
      end
    end

    # Sends commands in one go, over a connection of their own. An idle one that turns out to be broken is replaced.
    # If the thread is interrupted, +undo+ is sent behind them.
    def ask(commands, within, undo = [])
      began = Latchd.now
      loop do
        connection = take_connection
        begin
          answers = connection.ask(commands, within)
          is_done = true
          give_back(connection)
          return answers
        rescue Unreachable
          is_done = true
          @mutex.synchronize do
            leave(connection.at)
            drop(connection)
          end
          raise if !connection.was_idle || Latchd.now - began >= LONGEST_ASK
        ensure
          interrupted(connection, undo) unless is_done
        end
      end
    end

    # As it stands behind them, it undoes them.
    def interrupted(connection, undo)
      connection.send(undo)
    rescue Unreachable
      nil # somebody sends it again
    ensure
      @mutex.synchronize { drop(connection) }
    end

    # Taking

    def take(hold)
      is_done = false
      began = reached = Latchd.now
      pause, tries = PAUSES[0], 0
      loop do
        begin
          asked = Latchd.now
          left = hold.wait ? [hold.wait - (asked - began), 0].max : NEVER
          tokens = ask_for(hold, left)
          if tokens
            attach(hold, tokens)
            is_done = true
            return
          end
          raise LockTimeout, "somebody else has #{hold.name}" if hold.wait && Latchd.now - began >= hold.wait

          reached, pause = Latchd.now, PAUSES[0]
          next
        rescue LockTimeout
          is_done = left.zero? && !hold.keeps_place? # nothing was left behind
          raise
        rescue LockLost # the request is over: freed by force, or lost on its way
          raise if hold.wait && Latchd.now - began >= hold.wait

          insist_behind(hold.commands('UNLOCK'), @patience) # of several names the others are there
          hold.request = SecureRandom.uuid
          next
        rescue Unreachable, Backend, GoAway => e
          now, tries = Latchd.now, tries + 1
          reached, tries = now, 0 if hold.owned? && now - asked >= LONGEST_ASK && there?
          is_over = hold.wait && now - began >= hold.wait
          raise if now - reached > @patience || (is_over && (e.is_a?(Backend) || tries > @urls.size))
        end
        sleep(pause)
        pause = [2 * pause, PAUSES[1]].min
      end
    ensure
      uninterrupted { abandon(hold) } unless is_done
    end

    # Whether latchd answers, though not the LOCK of an owner, which waits for longer than its answer is waited for.
    def there?
      connection = connect
      true
    rescue Error
      false
    ensure
      @mutex.synchronize { drop(connection) } if connection
    end

    def abandon(hold)
      @mutex.synchronize { hold.phase = :released if @holds.delete(hold.request) }
      insist_behind(hold.undo, [@patience, hold.lease || 0].max)
    end

    # Sends one LOCK.
    def ask_for(hold, left)
      words, takes = hold.asks(left)
      answer, = ask([words], takes + @timeout, hold.undo)
      raise answer if answer.is_a?(Error)

      answer && Array(answer)
    end

    # Attaches the hold to the link, and learns how long its lease is.
    def attach(hold, tokens)
      @mutex.synchronize do
        hold.begin(tokens)
        @holds[hold.request] = hold
        @hear_at = [@hear_at, Latchd.now + HEARD_AFTER].min
        @keeper = in_thread { keep }.tap { |thread| thread.name = 'latchd keeper' } unless @keeper&.alive?
        wake(AT_ONCE)
        hold.changed.wait(@mutex) until hold.phase != :granted || (hold.trouble && hold.answers.zero?)
        return if hold.phase != :granted

        @holds.delete(hold.request)
        hold.phase = :waiting
        raise hold.trouble
      end
    end

    # What a condition takes.
    def timeout(time)
      time == NEVER ? nil : [time - Latchd.now, 0.0001].max
    end

    # Has the keeper look at that time, at the latest. While it is awake it looks anyway.
    def wake(time)
      return if time >= @wake_at

      @wake_at = time
      @work.signal
    end

    # Keeping

    # Renews what is due, and says what is lost, until the client is closed and nothing is held.
    def keep
      @mutex.synchronize do
        until @is_closed && @holds.empty?
          now = Latchd.now
          @holds.each_value.select { |hold| hold.over?(now) }.each { |hold| lose(hold) }
          cut(Unreachable.new('no answer in time')) if @link && @link.deadline <= now && !@link.connection.readable?
          @wake_at = [keep_link(now), *@holds.each_value.map(&:until)].min
          @work.wait(@mutex, timeout(@wake_at))
          @wake_at = AT_ONCE
        end
        @link&.connection&.shut
        @link = @keeper = nil
      end
    end

    # Gives the time of the next call.
    def keep_link(now)
      if @link
        renew(now)
        listen(now)
        deadline = @link ? [@link.deadline, now + PAUSES[0]].max : AT_ONCE
        [*@holds.each_value.map(&:due), deadline, @hear_at].min
      elsif @is_connecting || @holds.empty?
        NEVER
      elsif @retry_at <= now
        start_link
      else
        @retry_at
      end
    end

    def start_link
      @is_connecting = true
      in_thread { run_link }.name = 'latchd link'
      NEVER
    rescue ThreadError => e # there are too many
      refuse_link(Unreachable.new(e.message))
    end

    # Sends the renewals that are due in one go.
    def renew(now)
      commands, expected = [], []
      @holds.each_value.select { |hold| hold.due <= now }.each do |hold|
        left = hold.phase == :held ? [(hold.until - now) / 3, LEAST_PATIENCE].max : NEVER
        commands.concat(hold.renewal(now))
        hold.names.each { expected << [hold, now + [left, @timeout].min] }
      end
      transmit(commands, expected)
    end

    # Listens for the names of the holds that last, and for no others. A notice that is missed shows at the next
    # renewal.
    def listen(now)
      return if @hear_at > now || @link.nil?

      old, young = @holds.each_value.partition { |hold| hold.since + HEARD_AFTER <= now }
      @hear_at = young.map { |hold| hold.since + HEARD_AFTER }.min || NEVER
      return if @link.deaf

      wanted = old.flat_map(&:names).to_set
      commands, expected = [], []
      { 'SUBSCRIBE' => wanted - @link.heard, 'UNSUBSCRIBE' => @link.heard - wanted }.each do |word, names|
        names.each do |name|
          commands << [word, "lost:#{name}", "uncertain:#{name}"]
          expected << ["#{word.downcase} #{name}", now + @timeout]
        end
      end
      @link.heard = wanted
      transmit(commands, expected)
    end

    def transmit(commands, expected)
      return if commands.empty?

      @link.expected.concat(expected)
      @link.connection.send(commands)
    rescue Unreachable => e
      cut(e)
    end

    # Gives the link up. All holds are attached to the next one at once.
    def cut(error)
      link, @link = @link, nil
      link.connection.shut # its thread closes it
      leave(link.connection.at)
      @holds.each_value do |hold|
        hold.due = AT_ONCE
        next if hold.answers.zero?

        hold.answers = 0
        fail_renewal(hold, error)
      end
      wake(AT_ONCE)
    end

    # Connects, and reads until the link breaks or another one is there.
    def run_link
      connection = connect(with_pushes: true)
      return unless (link = establish(connection))

      loop do
        said = connection.receive
        @mutex.synchronize do
          return unless @link.equal?(link)

          said.is_a?(Connection::Push) ? hear(said.words) : settle(said)
        end
      end
    rescue StandardError => e
      @mutex.synchronize { link ? (cut(e) if @link.equal?(link)) : refuse_link(e) }
    ensure
      @mutex.synchronize { drop(connection) } if connection
    end

    def establish(connection)
      @mutex.synchronize do
        @is_connecting = false
        wake(AT_ONCE)
        return if @is_closed && @holds.empty?

        @hear_at = AT_ONCE
        @holds.each_value { |hold| hold.due = AT_ONCE }
        @link = Link.new(connection)
      end
    end

    def refuse_link(error)
      @is_connecting = false
      @retry_at = Latchd.now + grow_pause
      @holds.each_value { |hold| fail_renewal(hold, error) }
      wake(AT_ONCE)
      @retry_at
    end

    def grow_pause
      @pause.tap { @pause = [2 * @pause, PAUSES[1]].min }
    end

    # A notice ends with the token of a hold. That latchd begins to listen is one too: what is said from now on is
    # heard, and what was said before was not.
    def hear(words)
      what, channel, text = words
      topic, name = channel.to_s.b.split(':', 2)
      token = text.to_s.b[/\d+\z/].to_i
      unless what == 'message'
        return if topic != 'uncertain' # the second of two

        @link.expected.reject! { |of, _| of == "#{what} #{name}" }
        return if what != 'subscribe'
      end
      @holds.each_value do |hold|
        index = hold.names.index(name)
        next if index.nil? || (what == 'message' && hold.tokens[index] != token)

        hold.notice
        doubt(hold) if what == 'message' && topic == 'uncertain'
      end
      wake(AT_ONCE)
    end

    # Takes one answer.
    def settle(answer)
      hold, = @link.expected.shift
      return cut(Unreachable.new('an answer to nothing')) if hold.nil?
      return @link.deaf = true if hold.is_a?(String)
      return unless @holds[hold.request].equal?(hold) && hold.answers.positive? # or it was released meanwhile

      hold.answers -= 1
      if answer.is_a?(Integer)
        hold.least = [hold.least, answer].min
      elsif hold.trouble.nil? || answer.is_a?(LockLost) # of errors, a loss comes before others
        hold.trouble = answer
      end
      settle_renewal(hold) if hold.answers.zero?
    end

    def settle_renewal(hold)
      if hold.trouble.nil?
        hold.renewed
        @pause = PAUSES[0]
      elsif hold.trouble.is_a?(LockLost) && hold.phase == :held
        lose(hold)
      else
        fail_renewal(hold, hold.trouble)
        hold.due = Latchd.now + grow_pause
      end
      hold.changed.broadcast
      wake([hold.due, hold.until].min)
    end

    # A renewal failed, or could not be sent.
    def fail_renewal(hold, error)
      hold.phase == :granted ? hold.trouble = error : doubt(hold)
      hold.changed.broadcast
    end

    def doubt(hold)
      return if hold.phase != :held || hold.uncertain

      hold.uncertain = true
      tell("#{hold.name} is uncertain: no renewal is confirmed", hold.calls[:uncertain])
    end

    def lose(hold)
      return if hold.phase != :held

      hold.phase = :lost
      @holds.delete(hold.request)
      @hear_at = [@hear_at, Latchd.now + HEARD_AFTER].min
      tell("#{hold.name} is lost", hold.calls[:lost])
      hold.changed.broadcast
      wake(@hear_at)
    end

    # In a thread of its own, as the caller has the mutex.
    def tell(line, call)
      return unless @logger || call

      in_thread do
        @logger&.warn(line)
        call&.call
      end
    rescue ThreadError
      nil # there are too many; the lock still says it
    end

    # Giving back

    # Where latchd is out of reach it goes on in the background: the work is done.
    def unlock(hold)
      error = insist(hold.commands('UNLOCK'), @timeout)
      is_done = !error.is_a?(Unreachable)
      error
    ensure
      insist_behind(hold.commands('UNLOCK'), [@patience, hold.lease || 0].max) unless is_done
    end

    # From now on no renewal counts, and no loss is told. Gives whether there was one.
    def let_go(hold)
      lose(hold) if hold.over?
      raise LockLost, "#{hold.name} is held by the process that this one was forked from" if hold.phase == :forked
      raise LockLost, "#{hold.name} is not held" unless %i[held lost].include?(hold.phase)

      @holds.delete(hold.request)
      @hear_at = [@hear_at, Latchd.now + HEARD_AFTER].min
      wake(@is_closed ? AT_ONCE : @hear_at)
      hold.changed.broadcast
      (hold.phase == :lost).tap { hold.phase = :released }
    end

    # Sends commands, through restarts, for so long. Gives an error; a loss comes before others.
    def insist(commands, patience)
      deadline, pause = Latchd.now + patience, PAUSES[0]
      begin
        errors = ask(commands, @timeout).grep(Error)
        errors.find { |error| error.is_a?(LockLost) } || errors.first
      rescue Unreachable => e
        return e if Latchd.now >= deadline

        sleep(pause)
        pause = [2 * pause, PAUSES[1]].min
        retry
      rescue Error => e
        e
      end
    end

    def insist_behind(commands, patience)
      in_thread { insist(commands, patience) }
    rescue ThreadError
      nil # the process ends, or has too many: what was granted ends with its lease
    end

    def held?(name)
      info = query(['LOCKINFO', name], patience: 0)
      case info.each_slice(2).to_h['state']
      when 'free' then false
      when 'withheld'
        raise Backend, "latchd grants #{name} to nobody for now, and a hold of it may come back"
      when 'lent' # only the latchd that has it on loan knows whether somebody holds it
        !Leader.new(*query(['LEADER', name], patience: 0)).nobody?
      else true
      end
    end
  end

  # One name, or several, that are held; of Client#lock.
  class Lock
    def initialize(client, hold) # :nodoc:
      @client, @hold = client, hold
    end

    def acquire # :nodoc:
      @client.acquire(@hold)
    end

    def end_of_block(error) # :nodoc:
      release if %i[held lost forked].include?(@hold.phase)
    rescue LockLost
      raise if error.nil? # what the work itself raised is of more interest
    end

    # The fencing token, of the first of several names.
    def token
      @hold.tokens.first
    end

    # The fencing token of each name.
    def tokens
      @hold.given.zip(@hold.tokens).to_h
    end

    # Whether this object holds it, by the clock of this moment.
    def held?
      !lost? && @hold.phase == :held
    end

    # Whether it was lost before it was released, by the clock of this moment.
    def lost?
      @client.lost?(@hold)
    end

    # The last renewal failed, and the lease is not over yet.
    def uncertain?
      held? && @hold.uncertain
    end

    # Waits until it is lost. False: it is not, after +timeout+ seconds (nil: no end), or it was released.
    def wait_lost(timeout = nil)
      @client.wait_lost(@hold, timeout)
    end

    # Raises LockLost if it was lost before. It does not wait for a latchd that is out of reach for longer than the
    # timeout, but goes on in the background.
    def release
      @client.release(@hold)
    end
  end

  # A latch: it is set to a number, counted down, and opens at 0; of Client#latch.
  class Latch
    def initialize(client, name) # :nodoc:
      @client, @name = client, name
    end

    # False: one is set already. With an ID it can be repeated, and has the same answer.
    def set(count, id: SecureRandom.uuid)
      @client.query(['LATCH', 'SET', @name, count, 'ID', id]) == 1
    end

    # What is left. An ID, of 16 to 64 characters, counts once, however often it is repeated; without one, each call
    # counts.
    def count(id: SecureRandom.uuid)
      @client.query(['LATCH', 'COUNT', @name, 'ID', id])
    end

    # True: it is open. False: +timeout+ seconds (nil: no end) are over. Raises LatchGone if it was deleted or lost.
    def wait(timeout = nil)
      deadline = timeout ? Latchd.now + timeout : NEVER
      loop do
        takes = [[deadline - Latchd.now, 0].max, LONGEST_ASK].min
        answer = @client.query(['LATCH', 'AWAIT', @name, 'WAIT', Latchd.millis(takes)], takes: takes)
        return !answer.nil? if answer || Latchd.now >= deadline
      end
    end

    # False: there was none.
    def delete
      @client.query(['LATCH', 'DELETE', @name]) == 1
    end
  end

  # A forked child closes its copies of the connections.
  module AtFork # :nodoc:
    def self.clients
      @clients ||= []
    end

    def _fork
      super.tap { |pid| AtFork.clients.each(&:after_fork) if pid.zero? }
    end
  end
  private_constant :AtFork
  Process.singleton_class.prepend(AtFork)
end
