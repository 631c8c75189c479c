# Takes a lock with the installed package: take.rb URL NAME. Prints the token; gives it back at the end of its input.
require 'latchd'

Latchd.new(ARGV[0]).lock(ARGV[1], wait: 10) do |lock|
  puts lock.token
  $stdout.flush
  $stdin.read
end
