//! The time since an instant in the past.
use std::time::Duration;

/// It runs during suspend.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) fn now() -> Duration {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanos: i64,
    }
    extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const CLOCK_BOOTTIME: i32 = 7;
    let mut time = Timespec { seconds: 0, nanos: 0 };
    // SAFETY: the C library, which std links, writes one timespec, and has it laid out like this on
    // every 64-bit Linux.
    let failed = unsafe { clock_gettime(CLOCK_BOOTTIME, &mut time) };
    assert_eq!(failed, 0, "there is no CLOCK_BOOTTIME");
    Duration::new(time.seconds as u64, time.nanos as u32)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(crate) fn now() -> Duration {
    use std::sync::{Mutex, PoisonError};
    use std::time::Instant;
    static BEGAN: Mutex<Option<Instant>> = Mutex::new(None);
    let mut began = BEGAN.lock().unwrap_or_else(PoisonError::into_inner);
    began.get_or_insert_with(Instant::now).elapsed()
}
