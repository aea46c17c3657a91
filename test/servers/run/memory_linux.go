package main

import "syscall"

// enough is the space that must be free, in bytes. All tests together use far less.
const enough = 4 << 30

// noexec is the flag of a file system that runs no programs, such as /dev/shm in a container.
const noexec = 8

// memory returns a directory in memory for the files of tests, or "" if there is none that runs
// programs and has enough space. Databases sync their writes thousands of times, and on a disk,
// tests would spend most of their time waiting for that. Files in memory survive the end of a
// process like files on a disk. They do not survive a power failure, but no test needs that.
func memory() string {
	const dir = "/dev/shm"
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || int64(fs.Flags)&noexec != 0 ||
		int64(fs.Bavail)*int64(fs.Bsize) < enough {
		return ""
	}
	return dir
}
