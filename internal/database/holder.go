package database

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// writerOf returns a process that is writing to an SQLite file for as long as one
// looks, half a second; 0 for none, and where the system does not tell. It opens
// nothing: see opened.
func writerOf(ctx context.Context, name string) (pid int) {
	for i := range 5 {
		holder := lockedBy(name+"-shm", writeByte)
		if holder == 0 || i > 0 && holder != pid {
			return 0
		}
		pid = holder
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return pid
}

// lockedBy returns the process that has locked a byte of a file for itself (proc(5),
// /proc/locks).
func lockedBy(name string, at int) (pid int) {
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
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "POSIX" || f[3] != "WRITE" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		from, err := strconv.Atoi(f[6])
		to, toErr := strconv.Atoi(f[7])
		if err == nil && toErr == nil && from <= at && at <= to {
			pid, _ = strconv.Atoi(f[4]) // 0 of another container
			return pid
		}
	}
	return 0
}
