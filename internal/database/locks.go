package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// opened counts how many times this process has each file open. While SQLite has a file open, other
// code must not open and close it. Closing it would release SQLite's POSIX locks on the file
// (https://sqlite.org/howtocorrupt.html, section 2.2).
var opened = struct {
	sync.Mutex
	files map[string]int
}{files: make(map[string]int)}

// register records that a file is about to be opened. If this process does not have the file open
// yet, register first calls prepare, which may open and close the file. The caller must call
// unregister once the file is closed.
func register(file string, prepare func() error) (unregister func(), err error) {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}

	opened.Lock()
	defer opened.Unlock()
	if opened.files[file] == 0 {
		if err := prepare(); err != nil {
			return nil, err
		}
	}

	opened.files[file]++
	return sync.OnceFunc(func() {
		opened.Lock()
		defer opened.Unlock()
		opened.files[file]--
	}), nil
}

// patience is how long a starting process waits while another one changes the schema.
const patience = 30 * time.Second

// withSchemaLock runs do while holding a lock on the file's schema, so that two processes that
// start together do not both create the schema.
func withSchemaLock(ctx context.Context, file string, do func() error) error {
	lock, err := os.OpenFile(file+"-schema-lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("locking schema: %w", err)
	}
	defer lock.Close() // releases the lock

	if err := waitForLock(ctx, lock); err != nil {
		return err
	}
	return do()
}

// waitForLock locks the schema lock, which another process may hold.
func waitForLock(ctx context.Context, lock *os.File) error {
	deadline := time.Now().Add(patience)
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("locking schema: %w", err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("locking schema: another selvage process has been changing it for %s: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// writerOf returns the id of the process that holds the write lock of an SQLite file. It checks for
// half a second, during which the process must hold the lock all the time. Otherwise, or if there
// is no /proc/locks, writerOf returns 0. It does not open the file, for the reason given at the
// variable opened.
func writerOf(ctx context.Context, name string) (pid int) {
	pid = lockedBy(name+"-shm", writeByte)
	for range 5 {
		if pid == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		if lockedBy(name+"-shm", writeByte) != pid {
			return 0
		}
	}
	return pid
}

// lockedBy returns the id of the process that has a write lock on the byte of a file at the given
// offset (proc(5), /proc/locks), or 0.
func lockedBy(name string, offset int) (pid int) {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}

	inode := fmt.Sprintf(":%d", info.Sys().(*syscall.Stat_t).Ino)
	for line := range strings.Lines(string(locks)) {
		// number: POSIX ADVISORY WRITE pid device:inode first last
		fields := strings.Fields(line)
		if len(fields) < 8 || fields[1] != "POSIX" || fields[3] != "WRITE" || !strings.HasSuffix(fields[5], inode) {
			continue
		}
		first, err := strconv.Atoi(fields[6])
		if err != nil || offset < first {
			continue
		}
		last, err := strconv.Atoi(fields[7]) // fails for a lock to the end of the file
		if err != nil || offset > last {
			continue
		}
		pid, _ = strconv.Atoi(fields[4]) // 0 if the process is in another container
		return pid
	}
	return 0
}
