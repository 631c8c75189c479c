//go:build !linux

package latchd

import "time"

var started = time.Now()

// bootTime is the time since an instant in the past.
func bootTime() time.Duration { return time.Since(started) }
