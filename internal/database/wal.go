package database

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// An index is the part of FILE-shm that describes FILE-wal. It holds the number of frames in the
// log, and how many of them have been moved to FILE.
type index struct {
	frames, moved uint32
	pageSize      int64
	salt          [8]byte
}

// checkLog compares FILE-wal with the state that FILE-shm records. SQLite does not notice that the log
// has been truncated or deleted: it opens the file without the changes that were in the missing part,
// although it has acknowledged them.
//
// FILE-shm is only a hint: checkLog returns nil if another process has the file open, or if
// FILE-shm belongs to another log.
func checkLog(file string) error {
	shm, err := os.Open(file + "-shm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the index of the log: %w", err)
	}
	defer shm.Close()
	if isShared(shm) {
		return nil
	}

	idx, ok := readIndex(shm)
	if !ok || idx.frames == 0 {
		return nil
	}

	err = idx.compareFile(file)
	if again, ok := readIndex(shm); err != nil && (!ok || again != idx || isShared(shm)) {
		return nil // another process has opened the file in the meantime
	}
	return err
}

// These are the offsets of bytes of FILE-shm that processes lock
// (https://sqlite.org/walformat.html, section 2.3).
const (
	writeByte = 120 // locked by the writer
	openByte  = 128 // locked by every process that has the file open
)

func isShared(shm *os.File) bool {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: openByte, Len: 1}
	err := syscall.FcntlFlock(shm.Fd(), syscall.F_GETLK, &lock)
	return err != nil || lock.Type != syscall.F_UNLCK
}

// readIndex reads the header of FILE-shm, which is stored twice, in the machine's byte order
// (https://sqlite.org/walformat.html, section 2.1).
func readIndex(shm io.ReaderAt) (idx index, ok bool) {
	var b [136]byte
	if _, err := shm.ReadAt(b[:], 0); err != nil {
		return idx, false
	}
	order := binary.NativeEndian
	sum := checksum{order: order}
	sum.add(b[:40])
	isInit, isSame := b[12] == 1, [48]byte(b[:48]) == [48]byte(b[48:96])
	if !isInit || !isSame || sum.a != order.Uint32(b[40:]) || sum.b != order.Uint32(b[44:]) {
		return idx, false
	}

	idx = index{
		frames:   order.Uint32(b[16:]),
		moved:    order.Uint32(b[96:]),
		pageSize: int64(order.Uint16(b[14:])),
		salt:     [8]byte(b[32:40]),
	}
	if idx.pageSize == 1 {
		idx.pageSize = 1 << 16
	}
	return idx, true
}

func (idx index) compareFile(file string) error {
	log, err := os.Open(file + "-wal")
	switch {
	case err == nil:
		defer log.Close()
		return idx.compare(file, log)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("reading the log: %w", err)
	case idx.moved == idx.frames:
		return nil
	}
	return lostChanges(file, 0, idx.frames)
}

// compare reads the log as SQLite does after a crash: up to the first frame with a wrong checksum
// (https://sqlite.org/fileformat2.html, section 4). It returns an error if frames that FILE-shm
// records are missing.
func (idx index) compare(file string, log *os.File) error {
	var head [32]byte
	if _, err := log.ReadAt(head[:], 0); err != nil {
		if idx.moved == idx.frames {
			return nil
		}
		return lostChanges(file, 0, idx.frames)
	}
	if [8]byte(head[16:24]) != idx.salt {
		return nil // FILE-shm belongs to another log
	}

	var order binary.ByteOrder = binary.LittleEndian
	if head[3]&1 == 1 {
		order = binary.BigEndian
	}

	sum := checksum{order: order}
	sum.add(head[:24])

	frame := make([]byte, 24+idx.pageSize)
	for n := range idx.frames {
		_, err := log.ReadAt(frame, 32+int64(n)*int64(len(frame)))
		sum.add(frame[:8])
		sum.add(frame[24:])
		a, b := binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[20:])
		isIntact := a == sum.a && b == sum.b
		if err != nil || !isIntact || [8]byte(frame[8:16]) != idx.salt {
			return lostChanges(file, n, idx.frames)
		}
	}
	return nil
}

// A checksum is computed over pairs of words, as defined by the format of the log.
type checksum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (c *checksum) add(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		c.a += c.order.Uint32(p) + c.b
		c.b += c.order.Uint32(p[4:]) + c.a
	}
}
