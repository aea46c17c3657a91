package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/selvage/selvage/calls"
)

// A reader reads the entries of a spool in order, up to the last complete block.
type reader struct {
	in    *bufio.Reader
	sum   uint32 // checksum of the last block
	block []byte
	rest  []byte // unparsed part of the block
}

// errNoSpool is returned for a file without a complete header, in which nothing was recorded.
var errNoSpool = errors.New("not a spool")

// errLaterSpool is returned for a spool in a format that this version cannot read. The spool is kept
// for the version that wrote it.
var errLaterSpool = errors.New("a later version of selvage wrote the spool")

// openReader reads the header of a spool, and returns a reader for the entries after it.
func openReader(file io.ReaderAt) (*reader, calls.RecordedCall, error) {
	r := &reader{in: bufio.NewReaderSize(io.NewSectionReader(file, 0, 1<<62), 64<<10), sum: firstSum()}
	call, err := r.header()
	if errors.Is(err, io.EOF) {
		return nil, calls.RecordedCall{}, errNoSpool
	}
	if err != nil {
		return nil, calls.RecordedCall{}, err
	}
	return r, call, nil
}

// header reads the header of a spool. It returns io.EOF if the file ends before the header does.
func (r *reader) header() (call calls.RecordedCall, err error) {
	var start [len(magic)]byte
	if err := r.fill(start[:]); err != nil {
		return calls.RecordedCall{}, err
	}
	if string(start[:]) != magic {
		whole := !bytes.Contains(start[:], []byte{0}) // a crash can leave zeros
		if whole && bytes.HasPrefix(start[:], []byte(anyMagic)) {
			return calls.RecordedCall{}, errLaterSpool
		}
		return calls.RecordedCall{}, errNoSpool
	}

	e, err := r.next()
	if err != nil {
		return calls.RecordedCall{}, err
	}
	if e.kind != headerKind || json.Unmarshal(e.payload, &call) != nil || call.Sid == "" {
		return calls.RecordedCall{}, errLaterSpool // the checksum is right, so the header is not damaged
	}
	return call, nil
}

// next returns the next entry, or io.EOF after the last complete block. The payload is valid until
// the next call.
func (r *reader) next() (entry, error) {
	for len(r.rest) == 0 {
		if err := r.nextBlock(); err != nil {
			return entry{}, err
		}
	}
	e, rest, ok := parseEntry(r.rest)
	if !ok {
		return entry{}, io.EOF // a later version wrote the entry
	}
	r.rest = rest
	return e, nil
}

// nextBlock reads a block and verifies its checksum.
func (r *reader) nextBlock() error {
	var head [blockHead]byte
	if err := r.fill(head[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxBlock {
		return io.EOF
	}

	if uint32(cap(r.block)) < size {
		r.block = make([]byte, size)
	}
	r.block = r.block[:size]
	if err := r.fill(r.block); err != nil {
		return err
	}
	sum := crc32.Update(r.sum, castagnoli, r.block)
	if sum != binary.LittleEndian.Uint32(head[4:]) {
		return io.EOF
	}
	r.sum, r.rest = sum, r.block
	return nil
}

// fill reads len(b) bytes. It returns io.EOF if the file has fewer.
func (r *reader) fill(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("reading spool: %w", withoutPath(err))
	}
	return nil
}
