package blob

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// maxSums is the largest number of checksums of an object. In base64 they fit into the 2 KB that S3
// allows for the metadata of an object.
const maxSums = 256

// minPiece is the size of a piece of a small object.
const minPiece = 64 << 10

// castagnoli is the table for the checksums. CPUs have an instruction for its polynomial.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sums holds the checksums of an object. The object is divided into pieces of the same size, except
// for the last one, which may be shorter. Each piece has a checksum, so that any range can be
// verified without reading the rest.
type sums struct {
	size  int64 // size of the object in bytes
	piece int64
	crcs  []uint32
}

// sumUp computes the checksums of the first size bytes of r.
func sumUp(r io.ReaderAt, size int64) (sums, error) {
	s := sums{size: size, piece: minPiece}
	for s.count() > maxSums {
		s.piece *= 2
	}

	if s.piece > maxPiece {
		return sums{}, problem.New(problem.TooLarge, "request_too_large",
			"an object store holds files of at most 16 GiB")
	}

	buf := make([]byte, minPiece)
	for at := int64(0); at < size; at += s.piece {
		crc := crc32.New(castagnoli)
		piece := io.NewSectionReader(r, at, min(s.piece, size-at))
		n, err := io.CopyBuffer(onlyWriter{crc}, piece, buf)
		if err != nil || n != piece.Size() {
			return sums{}, fmt.Errorf("computing the checksums of an object: %w",
				errors.Join(err, short(n, piece.Size())))
		}
		s.crcs = append(s.crcs, crc.Sum32())
	}
	return s, nil
}

// An onlyWriter hides a writer's ReadFrom, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// short returns io.ErrUnexpectedEOF if n is less than wanted.
func short(n, wanted int64) error {
	if n < wanted {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (s sums) count() int64 { return (s.size + s.piece - 1) / s.piece }

// length returns the number of bytes in piece i.
func (s sums) length(i int64) int64 { return min(s.piece, s.size-i*s.piece) }

// verify reports whether the bytes match the checksum of piece i.
func (s sums) verify(i int64, piece []byte) bool {
	return int64(len(piece)) == s.length(i) && crc32.Checksum(piece, castagnoli) == s.crcs[i]
}

// String formats the sums for the metadata of the object: the size, the size of a piece, and the
// checksums in base64.
func (s sums) String() string {
	raw := make([]byte, 0, 4*len(s.crcs))
	for _, crc := range s.crcs {
		raw = binary.BigEndian.AppendUint32(raw, crc)
	}
	return fmt.Sprintf("%d %d %s", s.size, s.piece, base64.StdEncoding.EncodeToString(raw))
}

// errNoSums is the error for an object without valid checksums, which means that another program
// stored it.
var errNoSums = errors.New("the object has no checksums: selvage did not store it")

// parseSums parses the result of String.
func parseSums(text string) (s sums, err error) {
	fields := strings.Split(text, " ")
	if len(fields) != 3 {
		return sums{}, errNoSums
	}
	size, errSize := strconv.ParseInt(fields[0], 10, 64)
	piece, errPiece := strconv.ParseInt(fields[1], 10, 64)
	raw, errRaw := base64.StdEncoding.DecodeString(fields[2])
	if errors.Join(errSize, errPiece, errRaw) != nil || size < 0 || piece < minPiece || piece > maxPiece {
		return sums{}, errNoSums
	}

	s = sums{size: size, piece: piece}
	if int64(len(raw)) != 4*s.count() {
		return sums{}, errNoSums
	}
	for i := range s.count() {
		s.crcs = append(s.crcs, binary.BigEndian.Uint32(raw[4*i:]))
	}
	return s, nil
}

// maxPiece is the largest piece that a reader keeps in memory. Pieces of this size suffice for
// objects of 16 GiB.
const maxPiece = 64 << 20
