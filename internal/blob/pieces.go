package blob

import (
	"errors"
	"io"
	"sync"
)

// pieces reads a file that can only be read and verified in whole pieces. All pieces have the same
// size, except that the last piece may be shorter. pieces keeps the piece that was read last. ReadAt is
// safe for concurrent use; Read and Seek are not.
type pieces struct {
	size  int64 // size of the file in bytes
	piece int64 // size of a piece in bytes
	load  func(i int64, piece []byte) error

	at   int64 // offset of the next Read
	mu   sync.Mutex
	held []byte
	i    int64 // index of the piece in held; -1 if held is not valid
}

// Read implements [io.Reader].
func (p *pieces) Read(into []byte) (int, error) {
	n, err := p.ReadAt(into[:min(int64(len(into)), p.piece)], p.at)
	p.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Seek implements [io.Seeker].
func (p *pieces) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += p.at
	case io.SeekEnd:
		offset += p.size
	}
	if offset < 0 {
		return 0, errors.New("seeking before the beginning of a blob")
	}
	p.at = offset
	return offset, nil
}

// ReadAt implements [io.ReaderAt].
func (p *pieces) ReadAt(into []byte, off int64) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n < len(into) {
		if off >= p.size {
			return n, io.EOF
		}
		i := off / p.piece
		if err := p.hold(i); err != nil {
			return n, err
		}
		read := copy(into[n:], p.held[off-i*p.piece:])
		n, off = n+read, off+int64(read)
	}
	return n, nil
}

// hold reads piece i into held.
func (p *pieces) hold(i int64) error {
	if p.i == i && len(p.held) > 0 {
		return nil
	}
	p.i = -1
	length := min(p.piece, p.size-i*p.piece)
	if int64(cap(p.held)) < length {
		p.held = make([]byte, length)
	}
	p.held = p.held[:length]
	if err := p.load(i, p.held); err != nil {
		return err
	}
	p.i = i
	return nil
}
