module latchd/tests/proof

go 1.19

require github.com/anishathalye/porcupine v0.1.6
