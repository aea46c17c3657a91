package main

import "syscall"

// What all tests together keep at once is far less.
const enough = 4 << 30

// noexec is the flag of a file system from which nothing runs, such as /dev/shm of a container.
const noexec = 8

// memory returns a directory in memory for what tests keep, or "" where there is none with
// enough room. Databases ask for what they wrote to be on disk thousands of times, and
// tests would wait for it more than they work. What is killed loses nothing in memory
// that it would not lose on a disk: only a machine without power does, which no test is about.
func memory() string {
	const dir = "/dev/shm"
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || int64(fs.Flags)&noexec != 0 ||
		int64(fs.Bavail)*int64(fs.Bsize) < enough {
		return ""
	}
	return dir
}
