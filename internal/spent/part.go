package spent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/durable"
)

// A part holds the uses of a minute, in memory and in a file. In memory, brief uses are separate from
// lasting uses, so that they can be freed as soon as they have expired.
type part struct {
	brief, lasting set
	split          int64  // the latest time at which brief uses expire, in Unix seconds
	name           string // "" without a file

	file    *os.File // nil if the part is closed
	written int64    // size of the file
	failed  bool     // a sync of the file has failed; a later sync may succeed even though data was lost
}

// briefFor is the longest life of a brief use. Proofs are brief.
const briefFor = 3 * time.Minute

// A set holds uses that are forgotten together.
type set struct {
	uses  map[digest]struct{}
	until int64 // the last time at which one of the uses expires, in Unix seconds
}

// newPart creates a part with an empty file.
func newPart(dir string, now time.Time) (*part, error) {
	p := &part{split: seconds(now.Add(briefFor))}
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
		p := &part{split: seconds(now.Add(briefFor)), name: filepath.Join(dir, e.Name())}
		if err := p.read(now); err != nil {
			return nil, err
		}
		if p.count() > 0 {
			parts = append(parts, p)
			continue
		}
		if err := errors.Join(p.file.Close(), p.remove()); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// read opens the file and reads the uses that have not expired. The file stays open until close,
// because the process that wrote it may not have synced it.
func (p *part) read(now time.Time) (err error) {
	p.file, err = os.Open(p.name)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(p.file)
	if err != nil {
		return errors.Join(err, p.file.Close())
	}
	p.parse(text, seconds(now))
	return nil
}

// recordSize is the size of a use in a file: its digest, when it expires, and a checksum. A crash of the
// machine may leave records that were not written completely, which the checksum detects.
const recordSize = len(digest{}) + 4 + 4

func appendRecord(b []byte, d digest, expires int64) []byte {
	begin := len(b)
	b = append(b, d[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(min(expires, math.MaxUint32)))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[begin:]))
}

// parse adds the uses in a file, except those that have expired before the time now.
func (p *part) parse(text []byte, now int64) {
	for record := range slices.Chunk(text, recordSize) {
		if len(record) < recordSize {
			return
		}
		body := record[:recordSize-4]
		sum := binary.BigEndian.Uint32(record[recordSize-4:])
		expires := int64(binary.BigEndian.Uint32(body[len(digest{}):]))
		if crc32.ChecksumIEEE(body) == sum && expires >= now {
			p.add(digest(body[:len(digest{})]), expires)
		}
	}
}

// seconds returns a time in Unix seconds, rounded up.
func seconds(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

func (p *part) add(d digest, expires int64) {
	s := &p.lasting
	if expires <= p.split {
		s = &p.brief
	}
	if s.uses == nil {
		s.uses = make(map[digest]struct{})
	}
	s.uses[d] = struct{}{}
	s.until = max(s.until, expires)
}

func (p *part) has(d digest) bool {
	_, brief := p.brief.uses[d]
	_, lasting := p.lasting.uses[d]
	return brief || lasting
}

// count returns the number of uses in memory.
func (p *part) count() int { return len(p.brief.uses) + len(p.lasting.uses) }

// forget frees each set whose uses have all expired before now.
func (p *part) forget(now int64) {
	for _, s := range []*set{&p.brief, &p.lasting} {
		if s.until < now {
			*s = set{}
		}
	}
}

// write appends records to the file. If the write fails, the records of the next write overwrite them.
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
		p.failed = true
		return fmt.Errorf("syncing log of uses: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(p.name)); err != nil {
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
