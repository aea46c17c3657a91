package blob

import (
	"fmt"
	"os"
	"syscall"
)

// Reserve makes Put fail with problem.Unavailable while the disk has fewer free bytes than the
// given number, so that other programs and databases can still write to it. The default of 0
// reserves nothing. Call Reserve before the directory is used.
func (d *Dir) Reserve(bytes int64) { d.reserved = bytes }

// checkFree fails with ENOSPC, as on a full disk, if fewer bytes are free than are reserved.
func (d *Dir) checkFree() error { return checkFree(d.root, d.reserved) }

func (b *Bucket) checkFree() error { return checkFree(b.spool, b.reserved) }

func checkFree(root *os.Root, reserved int64) error {
	if reserved <= 0 {
		return nil
	}
	free, err := freeOn(root)
	if err != nil {
		return err
	}
	if free < reserved {
		return fmt.Errorf("%d bytes are free, and %d are reserved: %w", free, reserved, syscall.ENOSPC)
	}
	return nil
}

// Free returns how many more bytes unprivileged programs can write to the disk.
func (d *Dir) Free() (int64, error) { return freeOn(d.root) }

func freeOn(root *os.Root) (int64, error) {
	dir, err := root.Open(".")
	if err != nil {
		return 0, fmt.Errorf("opening media directory: %w", err)
	}
	defer dir.Close()
	var stat syscall.Statfs_t
	if err := syscall.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("reading free space: %w", err)
	}
	return int64(stat.Bavail) * stat.Bsize, nil
}
