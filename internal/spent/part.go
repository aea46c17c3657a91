package spent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// A part holds the uses of a minute, in memory and in a file.
type part struct {
	uses  map[digest]struct{}
	until int64  // the last time at which one of the uses expires, in Unix seconds
	name  string // "" without a file

	file    *os.File // nil if the part is closed
	written int64    // size of the file
}

// newPart creates a part with an empty file.
func newPart(dir string, now time.Time) (*part, error) {
	p := &part{uses: make(map[digest]struct{})}
	err := fs.ErrExist
	for at := now.UnixMicro(); errors.Is(err, fs.ErrExist); at++ {
		p.name = filepath.Join(dir, strconv.FormatInt(at, 10))
		p.file, err = os.OpenFile(p.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("creating log of uses: %w", err)
	}
	return p, nil
}

// readParts reads the files in dir, the oldest first. It deletes files whose uses have all expired.
func readParts(dir string, now time.Time) (parts []*part, err error) {
	entries, err := os.ReadDir(dir) // sorted by name, and all names have the same length
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, err := strconv.ParseInt(e.Name(), 10, 64); err != nil {
			continue
		}
		p := &part{uses: make(map[digest]struct{}), name: filepath.Join(dir, e.Name())}
		text, err := os.ReadFile(p.name)
		if err != nil {
			return nil, err
		}
		p.parse(text, seconds(now))
		if len(p.uses) > 0 {
			parts = append(parts, p)
		} else if err := p.remove(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// A record is a use in a file: its digest, when it expires, and a checksum. A crash of the machine
// may leave records that were not written completely, which the checksum detects.
const recordSize = len(digest{}) + 4 + 4

func appendRecord(b []byte, d digest, expires int64) []byte {
	begin := len(b)
	b = append(b, d[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(min(expires, math.MaxUint32)))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[begin:]))
}

// parse adds the uses in a file that expire after now.
func (p *part) parse(text []byte, now int64) {
	for record := range slices.Chunk(text, recordSize) {
		if len(record) < recordSize {
			return
		}
		body, sum := record[:recordSize-4], binary.BigEndian.Uint32(record[recordSize-4:])
		expires := int64(binary.BigEndian.Uint32(body[len(digest{}):]))
		if crc32.ChecksumIEEE(body) == sum && expires >= now {
			p.add(digest(body[:len(digest{})]), expires)
		}
	}
}

// seconds returns a time in Unix seconds, rounded up.
func seconds(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

func (p *part) add(d digest, expires int64) {
	p.uses[d] = struct{}{}
	p.until = max(p.until, expires)
}

// write appends records to the file. If it fails, the next records take the place of these.
func (p *part) write(records []byte) error {
	if _, err := p.file.WriteAt(records, p.written); err != nil {
		return fmt.Errorf("writing log of uses: %w", err)
	}
	p.written += int64(len(records))
	return nil
}

// close writes the file to the disk and closes it.
func (p *part) close() error {
	if p.file == nil {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("syncing log of uses: %w", err)
	}
	if err := syncDir(filepath.Dir(p.name)); err != nil {
		return fmt.Errorf("syncing log of uses: %w", err)
	}
	err := p.file.Close()
	p.file = nil
	return err
}

// remove deletes the file.
func (p *part) remove() error {
	if p.name == "" {
		return nil
	}
	if err := os.Remove(p.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting log of uses: %w", err)
	}
	return nil
}
