# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = 'latchd'
  spec.version = File.read(File.join(__dir__, 'lib/latchd.rb'))[/VERSION = '(.*)'/, 1]
  spec.summary = 'Locks of latchd: renewed in the background, with fencing tokens, told when lost'
  spec.authors = ['The latchd authors']
  spec.license = 'MIT'
  spec.required_ruby_version = '>= 3.1'
  spec.files = %w[lib/latchd.rb sig/latchd.rbs README.md CHANGELOG.md LICENSE]
  spec.extra_rdoc_files = %w[README.md CHANGELOG.md]
  spec.metadata = { 'rubygems_mfa_required' => 'true' }
end
