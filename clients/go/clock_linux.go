package latchd

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7

// bootTime is the time since an instant in the past; it runs during suspend.
func bootTime() time.Duration {
	var now syscall.Timespec
	_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime,
		uintptr(unsafe.Pointer(&now)), 0)
	if failed != 0 {
		panic("latchd: there is no CLOCK_BOOTTIME")
	}
	return time.Duration(now.Nano())
}
